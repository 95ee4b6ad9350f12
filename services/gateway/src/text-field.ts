import { hasCodePointsAtMost, isBlank } from '@playline/contracts';
import { invalidField } from '@playline/errors';
import { isPlaceholder } from '@playline/people';

/**
 * The text of a required field.
 * @throws PublicError VALIDATION_ERROR when it is absent, null, blank, not a string, not valid Unicode or too long
 */
export function requireText(
  value: unknown,
  { field, codePointsMax }: { field: string; codePointsMax: number },
): string {
  if (value === undefined || value === null) throw invalidField(field, `${field} is required`);
  if (typeof value !== 'string') throw invalidField(field, `${field} must be a string`);
  if (isBlank(value)) throw invalidField(field, `${field} is required`);
  if (!value.isWellFormed()) throw invalidField(field, `${field} holds a lone surrogate`);
  if (!hasCodePointsAtMost(value, codePointsMax))
    throw invalidField(field, `${field} is longer than ${codePointsMax} characters`);
  return value;
}

/**
 * Refuses a request about a placeholder, because it would be about everybody whose client sends it.
 * @throws PublicError VALIDATION_ERROR
 */
export function assertIdentifies(id: string, field: string): void {
  if (isPlaceholder(id))
    throw invalidField(field, `${field} is a placeholder that many clients send, not an id. Send the id of one person`);
}
