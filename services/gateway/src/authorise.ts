import type { KeyRecord } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';
import type { GuardedVerifier } from './rate-limits/failed-keys.ts';

/** Gives the environment that a request belongs to; a promise only when its key must be looked up. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Builds the check of one key header.
 * Missing: VALIDATION_ERROR. Malformed, unknown, refreshed away or of the other kind: UNAUTHORISED_REQUEST. A store
 * that cannot answer: the verifier's fault, hence 500, since a transient fault is no 4xx. Specification, parts A and G.
 * Whatever guards the verifier may refuse with TOO_MANY_REQUESTS_ERROR.
 * A page of an origin that a good key is not for: UNAUTHORISED_REQUEST, told to `onStranger`.
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onStranger: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // Nearly all keys have no list, and cost no more than this look.
    if (record.origins.length !== 0 && !isForOrigin(record, exchange)) {
      onStranger(record, exchange);
      throw new PublicError('UNAUTHORISED_REQUEST', { message: NOT_FOR_ORIGIN, details: { header: 'origin' } });
    }
    return record;
  };
  return (exchange) => {
    const key = exchange.request.headers[header];
    if (typeof key !== 'string' || key === '') {
      const message = `The header ${header} is missing.`;
      throw new PublicError('VALIDATION_ERROR', { message, details: { header } });
    }
    const verdict = verify(key, exchange);
    return verdict instanceof Promise ? verdict.then((record) => check(record, exchange)) : check(verdict, exchange);
  };
}

const NOT_FOR_ORIGIN = 'The key is not for pages of this origin.';

/**
 * Whether a key with a list of origins is for this caller. Browsers say where a page is of and cannot be talked out of it;
 * servers and clients of their own say nothing, and may use any key. Whose pages may read the answer follows from it.
 */
function isForOrigin({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}
