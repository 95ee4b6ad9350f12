import { PublicError } from '@playline/errors';
import { type Exchange, planJsonBody, readBody } from '@playline/http';

/** Most bytes of bodies that are read or stored at a time: sixteen of the largest. */
const BYTES_IN_FLIGHT_MAX = 32 * 1024 * 1024;

/** Reads the body of a call and works with it, within the memory that all bodies share. */
export type WithBody = <T>(exchange: Exchange, bytesMax: number, work: (body: Buffer) => Promise<T>) => Promise<T>;

/**
 * Builds the shared room. A call takes its part until it is answered.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when there is none; VALIDATION_ERROR for bodies that cannot be read or
 *   are too
 *   large
 */
export function createWithBody(roomBytes: number = BYTES_IN_FLIGHT_MAX): WithBody {
  let held = 0;
  return async (exchange, bytesMax, work) => {
    const plan = planJsonBody(exchange.request, bytesMax);
    const wanted = plan.declaredBytes ?? bytesMax;
    if (held > 0 && held + wanted > roomBytes) throw new PublicError('TOO_MANY_REQUESTS_ERROR');
    held += wanted;
    try {
      return await work(await readBody(exchange.request, plan));
    } finally {
      held -= wanted;
    }
  };
}
