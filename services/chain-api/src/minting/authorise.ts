import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';

export type Authorise = (exchange: Exchange) => Promise<KeyRecord>;

/** Missing key: VALIDATION_ERROR; invalid one: UNAUTHORISED_REQUEST. Contract, "Mints and metadata" and "Keys". */
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
