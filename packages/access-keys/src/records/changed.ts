import { type ErrorDetails, PublicError } from '@playline/errors';

/** The record that a change has made. @param record returned by `RecordStore.change` */
export function toDone<R>(record: R | null): R {
  if (record === null) throw new Error('nothing was changed');
  return record;
}

const NAME_CHARACTERS_MAX = 200;

/**
 * A name of a project, a collection or a signable key, without spaces around it.
 * @param of what it names, with its article
 * @throws PublicError VALIDATION_ERROR
 */
export function toName(name: string, of: string, details: ErrorDetails | null = null): string {
  const given = name.trim();
  if (given !== '' && given.length <= NAME_CHARACTERS_MAX) return given;
  const message = `The name of ${of} has 1 to ${NAME_CHARACTERS_MAX} characters.`;
  throw new PublicError('VALIDATION_ERROR', { message, details });
}
