import { createBytesInFlight, type Exchange, planJsonBody, readBody } from '@playline/http';

/** Most bytes of bodies that are read or stored at a time: sixteen of the largest. */
const BYTES_IN_FLIGHT_MAX = 32 * 1024 * 1024;

/** A call whose body is read. */
export interface BodyCall {
  readonly exchange: Exchange;
  /** The project of its key, which has its share of the memory of all bodies. */
  readonly projectId: string;
  readonly bytesMax: number;
}

/** Reads the body of a call and works with it, within the memory that all bodies share. */
export type WithBody = <T>(call: BodyCall, work: (body: Buffer) => Promise<T>) => Promise<T>;

/**
 * Builds the shared bound. The bytes of a body count from their arrival until the call is answered.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when there is no memory for the body; VALIDATION_ERROR for bodies that
 *   cannot be read or are too large
 */
export function createWithBody(bytesMax: number = BYTES_IN_FLIGHT_MAX): WithBody {
  const bytesInFlight = createBytesInFlight(bytesMax);
  return async (call, work) => {
    const plan = planJsonBody(call.exchange.request, call.bytesMax);
    const reservation = bytesInFlight.admit(call.projectId, plan.declaredBytes ?? call.bytesMax);
    try {
      return await work(await readBody(call.exchange.request, plan, { reservation }));
    } finally {
      reservation.release();
    }
  };
}
