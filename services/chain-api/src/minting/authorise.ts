import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';

/** Returns the record of the secret key of a request. */
export type Authorise = (exchange: Exchange) => Promise<KeyRecord>;

/**
 * Builds the check of secret keys. Missing: VALIDATION_ERROR. Malformed, unknown, ended or publishable:
 * UNAUTHORISED_REQUEST. A store that cannot answer is the verifier's fault, hence 500. Contract, "Mints and metadata"
 * and "Keys".
 */
export function createAuthorise(header: string, verify: KeyVerifier): Authorise {
  return async (exchange) => {
    const key = exchange.request.headers[header];
    if (typeof key !== 'string' || key === '') {
      const message = `The header ${header} is missing.`;
      throw new PublicError('VALIDATION_ERROR', { message, details: { header } });
    }
    const record = await verify(key);
    if (record === null) throw new PublicError('UNAUTHORISED_REQUEST', { details: { header } });
    return record;
  };
}
