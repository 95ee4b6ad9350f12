import { PublicError } from '@playline/errors';

/** The same words for what does not exist and for what an account may not see: nobody learns what others have. */
export function pageNotFound(): PublicError {
  return new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such page, or your account may not see it.' });
}
