import type { KeyRecord } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';
import type { GuardedVerifier } from './rate-limits/failed-keys.ts';

/** Gives the environment that a request belongs to; a promise only when its key must be looked up. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Builds the check of one key header: contract, "Missing key" and "Keys".
 * - Missing: VALIDATION_ERROR.
 * - Malformed, unknown, refreshed away or of the other kind: UNAUTHORISED_REQUEST.
 * - A good key on a page whose origin is not in its list: UNAUTHORISED_REQUEST, after a call of `onOtherOrigin`.
 * - Too many wrong keys from this address: TOO_MANY_REQUESTS_ERROR, thrown by the guard around the verifier.
 * - A store that cannot answer: the store's fault as it is, which becomes a 500. A fault that passes is never a 4xx.
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onOtherOrigin: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // Nearly all keys have no list, and cost no more than this look.
    if (record.origins.length !== 0 && !isForOrigin(record, exchange)) {
      onOtherOrigin(record, exchange);
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
 * Whether a key with a list of origins may be used by this caller. A browser always names the origin of a page that calls
 * another site; a program names none, and may use any key. Only pages of a listed origin may read the answer.
 */
function isForOrigin({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}
