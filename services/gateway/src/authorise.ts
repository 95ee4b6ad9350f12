import type { KeyRecord } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';
import type { GuardedVerifier } from './rate-limits/failed-keys.ts';

/** Returns the record of the request's key; a promise only when the key must be looked up. */
export type Authorise = (exchange: Exchange) => KeyRecord | Promise<KeyRecord>;

/**
 * Builds the check of one key header: contract, "Missing key" and "Keys".
 * - Missing: VALIDATION_ERROR.
 * - Malformed, unknown, revoked, replaced by a refresh or of the other kind: UNAUTHORISED_REQUEST.
 * - A valid key on a page whose origin is not in its list: UNAUTHORISED_REQUEST, after a call of `onOtherOrigin`.
 * - Too many wrong keys from this address: TOO_MANY_REQUESTS_ERROR, thrown by the guard around the verifier.
 * - A store that cannot answer: the store's own fault, which becomes a 500. A temporary fault is never a 4xx.
 */
export function createAuthorise(
  header: string,
  verify: GuardedVerifier,
  onOtherOrigin: (key: KeyRecord, exchange: Exchange) => void = () => {},
): Authorise {
  const check = (record: KeyRecord | null, exchange: Exchange): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    // Most keys have no list of origins, so the common case costs one comparison.
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
 * Whether a key with a list of origins may be used by this caller. A browser always sends the origin of a page that
 * calls another site. A program sends none, and may use any key. Only pages of a listed origin may read the answer.
 */
function isForOrigin({ origins }: KeyRecord, exchange: Exchange): boolean {
  const { origin } = exchange.request.headers;
  if (origin === undefined) return true;
  const isListed = origins.includes(origin);
  exchange.allowOrigin(isListed ? origin : null);
  return isListed;
}
