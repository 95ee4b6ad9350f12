import { createBytesInFlight, type Exchange, planJsonBody, readBody } from '@playline/http';

/** Enough for 16 bodies of maximum size. */
const BYTES_IN_FLIGHT_MAX = 32 * 1024 * 1024;

export interface BodyCall {
  readonly exchange: Exchange;
  /** The memory is shared equally among projects. */
  readonly projectId: string;
  readonly bytesMax: number;
}

export type WithBody = <T>(call: BodyCall, handle: (body: Buffer) => Promise<T>) => Promise<T>;

/** Reserves memory for a body until it is handled. @throws PublicError at the limit or for an invalid body */
export function createWithBody(): WithBody {
  const bytesInFlight = createBytesInFlight(BYTES_IN_FLIGHT_MAX);
  return async (call, handle) => {
    const plan = planJsonBody(call.exchange.request, call.bytesMax);
    const reservation = bytesInFlight.admit(call.projectId, plan.declaredBytes ?? call.bytesMax);
    try {
      return await handle(await readBody(call.exchange.request, plan, { reservation }));
    } finally {
      reservation.release();
    }
  };
}
