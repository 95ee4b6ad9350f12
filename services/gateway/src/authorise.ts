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
 */
export function createAuthorise(header: string, verify: GuardedVerifier): Authorise {
  const check = (record: KeyRecord | null): KeyRecord => {
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    return record;
  };
  return (exchange) => {
    const key = exchange.request.headers[header];
    if (typeof key !== 'string' || key === '') {
      const message = `The header ${header} is missing.`;
      throw new PublicError('VALIDATION_ERROR', { message, details: { header } });
    }
    const verdict = verify(key, exchange);
    return verdict instanceof Promise ? verdict.then(check) : check(verdict);
  };
}
