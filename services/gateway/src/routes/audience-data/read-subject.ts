import { ID_CODE_POINTS_MAX, type IdentityKind } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { parseQuery, singleValueOf } from '@playline/http';
import { USER_KINDS } from '@playline/people';
import { requireText } from '../../text-field.ts';

/** Whom an erasure is about: one id, and every kind it may have been sent under. */
export interface Subject {
  readonly id: string;
  readonly kinds: readonly IdentityKind[];
}

/**
 * Reads the subject of an erasure off the request target.
 * @throws PublicError VALIDATION_ERROR when not exactly one of the two identifiers is given, or it is blank, too long
 *   or given twice: specification, part C
 */
export function parseSubject(target: string): Subject {
  const query = parseQuery(target);
  const anonymousId = singleValueOf(query, 'anonymousId');
  const userId = singleValueOf(query, 'userId');
  if (anonymousId !== undefined && userId !== undefined) throw invalid('Give either anonymousId or userId, not both.');
  if (anonymousId !== undefined) return { id: requireId(anonymousId, 'anonymousId'), kinds: ['anonymous'] };
  if (userId !== undefined) return { id: requireId(userId, 'userId'), kinds: USER_KINDS };
  throw invalid('Give either anonymousId or userId.');
}

function requireId(value: string, field: string): string {
  return requireText(value, { field, codePointsMax: ID_CODE_POINTS_MAX });
}

function invalid(message: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message });
}
