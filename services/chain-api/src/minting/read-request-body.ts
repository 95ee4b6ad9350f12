import { createBytesInFlight, type Exchange, planJsonBody, readBody } from '@playline/http';

/** Sixteen of the largest bodies. */
const BYTES_IN_FLIGHT_MAX = 32 * 1024 * 1024;

export interface BodyCall {
  readonly exchange: Exchange;
  /** Shares the memory of all bodies. */
  readonly projectId: string;
  readonly bytesMax: number;
}

export type WithBody = <T>(call: BodyCall, work: (body: Buffer) => Promise<T>) => Promise<T>;

/** A body counts from its arrival until the answer. @throws PublicError without memory, or for an invalid body */
export function createWithBody(): WithBody {
  const bytesInFlight = createBytesInFlight(BYTES_IN_FLIGHT_MAX);
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
