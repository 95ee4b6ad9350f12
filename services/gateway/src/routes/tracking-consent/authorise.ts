import { PublicError } from '@playline/errors';
import type { Authorise } from '../../authorise.ts';

/**
 * The check of the key as the consent operations answer it: they list 400 and 500 only, so a key that is not valid is
 * VALIDATION_ERROR with the header's name: specification, part B, "Invalid key".
 */
export function createConsentAuthorise(authorise: Authorise): Authorise {
  return async (exchange) => {
    try {
      return await authorise(exchange);
    } catch (error) {
      if (!(error instanceof PublicError) || error.code !== 'UNAUTHORISED_REQUEST') throw error;
      throw new PublicError('VALIDATION_ERROR', { details: error.details, cause: error });
    }
  };
}
