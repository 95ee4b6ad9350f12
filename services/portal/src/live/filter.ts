/** Filters for subscriptions, parsed from the page URL. */
import { MESSAGE_TYPES, SURFACES } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type LiveEntry, OUTCOMES } from './entry.ts';

export interface LiveFilter {
  readonly type: string;
  /** Substring of the event name; case-insensitive. */
  readonly name: string;
  /** Message id, trace id or identity key, in lower case. Never a raw id, because filters are part of the URL. */
  readonly id: string;
  /** Identity keys separated by dots. Matches messages that contain any of these keys. */
  readonly identity: string;
  readonly surface: string;
  readonly test: string;
  readonly outcome: string;
}

export const NO_FILTER: LiveFilter = { type: '', name: '', id: '', identity: '', surface: '', test: '', outcome: '' };

export const FILTER_CHOICES = {
  type: MESSAGE_TYPES,
  surface: SURFACES,
  test: ['yes', 'no'],
  outcome: OUTCOMES,
} as const satisfies Partial<Record<keyof LiveFilter, readonly string[]>>;

const NAME_CHARACTERS_MAX = 200;
/** An id can have up to 16 identity keys: one as an anonymous id and one as a user id of each identity type. */
const IDENTITY_KEYS = /^[0-9a-f]{32}(\.[0-9a-f]{32}){0,15}$/;
const ID = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * @param canFilterByPerson whether the viewer may filter by person
 * @throws PublicError VALIDATION_ERROR with the invalid field
 */
export function parseFilter(query: URLSearchParams, canFilterByPerson: boolean): LiveFilter {
  const filter = {
    ...NO_FILTER,
    name: (query.get('name') ?? '').trim(),
    id: (query.get('id') ?? '').trim().toLowerCase(),
    identity: query.get('identity') ?? '',
  };
  if (filter.name.length > NAME_CHARACTERS_MAX) throw invalid('name', `at most ${NAME_CHARACTERS_MAX} characters`);
  if (filter.id !== '' && !ID.test(filter.id))
    throw invalid('id', 'a message id (UUID), a trace id or an identity key (32 hexadecimal digits)');
  if (filter.identity !== '' && !canFilterByPerson)
    throw new PublicError('VALIDATION_ERROR', {
      message:
        'identity: your role does not allow filtering by person. Remove this filter, or request the developer role from a project owner.',
      details: { field: 'identity' },
    });
  if (filter.identity !== '' && !IDENTITY_KEYS.test(filter.identity))
    throw invalid('identity', 'identity keys separated by dots');
  const chosen = Object.entries(FILTER_CHOICES).map(([name, choices]) => {
    const value = query.get(name) ?? '';
    if (value !== '' && !choices.some((choice) => choice === value))
      throw invalid(name, `one of ${choices.join(', ')}`);
    return [name, value];
  });
  return { ...filter, ...Object.fromEntries(chosen) };
}

function invalid(field: string, expected: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message: `${field}: expected ${expected}.`, details: { field } });
}

/** @param shouldMask whether ids are masked for the viewer, in which case identity keys match no message */
export function matchesFilter(filter: LiveFilter, entry: LiveEntry, shouldMask: boolean): boolean {
  const { type, name, id, identity, surface, test, outcome } = filter;
  const { message, rejection, traceId } = entry;
  if (outcome !== '' && entry.outcome !== outcome) return false;
  if (surface !== '' && (message ?? rejection)?.surface !== surface) return false;
  if (type !== '' && message?.type !== type) return false;
  if (name !== '' && message?.name.toLowerCase().includes(name.toLowerCase()) !== true) return false;
  if (test !== '' && message?.test !== (test === 'yes')) return false;
  // All keys have the same length and are separated by dots, so `includes` matches only whole keys.
  if (identity !== '' && !keysOf(entry).some((key) => identity.includes(key))) return false;
  if (id === '' || traceId === id || message?.messageId === id) return true;
  return !shouldMask && keysOf(entry).includes(id);
}

function keysOf({ message }: LiveEntry): readonly string[] {
  if (message === null) return [];
  return message.anonymousKey === '' ? message.subjectKeys : [...message.subjectKeys, message.anonymousKey];
}
