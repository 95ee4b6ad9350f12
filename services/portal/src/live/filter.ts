import { MESSAGE_TYPES, SURFACES } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type LiveEntry, OUTCOMES } from './entry.ts';

/** What a looker wants to see; '' is all of it. */
export interface LiveFilter {
  readonly type: string;
  /** Part of an event's name, whatever its case. */
  readonly name: string;
  /** Message id, trace id or identity key, in small letters. Never an id that a client gave somebody: it stands in links. */
  readonly id: string;
  /** Identity keys with dots between them: messages that name anybody of these. As the page makes them of an id. */
  readonly who: string;
  readonly surface: string;
  /** `yes` or `no` */
  readonly test: string;
  readonly fate: string;
}

export const NO_FILTER: LiveFilter = { type: '', name: '', id: '', who: '', surface: '', test: '', fate: '' };

/** What each part of a filter may be; those without a list are texts. */
export const FILTER_CHOICES = {
  type: MESSAGE_TYPES,
  surface: SURFACES,
  test: ['yes', 'no'],
  fate: OUTCOMES,
} as const satisfies Partial<Record<keyof LiveFilter, readonly string[]>>;

const NAME_CHARACTERS_MAX = 200;
/** One id may be a visitor's, a user's without a type, and a user's of each type: each of these has a key of its own. */
const WHO = /^[0-9a-f]{32}(\.[0-9a-f]{32}){0,15}$/;
const ID = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * Reads a filter from a query.
 * @param mayName whether the viewer may look for a person: others get no messages by identity keys
 * @throws PublicError VALIDATION_ERROR that says what a part may be
 */
export function parseFilter(query: URLSearchParams, mayName: boolean): LiveFilter {
  const wanted = {
    ...NO_FILTER,
    name: (query.get('name') ?? '').trim(),
    id: (query.get('id') ?? '').trim().toLowerCase(),
    who: query.get('who') ?? '',
  };
  if (wanted.name.length > NAME_CHARACTERS_MAX) throw mistake('name', `at most ${NAME_CHARACTERS_MAX} characters`);
  if (wanted.id !== '' && !ID.test(wanted.id))
    throw mistake('id', 'a message id (UUID), a trace id or an identity key (32 hexadecimal digits)');
  if (wanted.who !== '' && !mayName)
    throw new PublicError('VALIDATION_ERROR', {
      message:
        'who: your role may not look for the messages of one person. Remove this filter, or ask an owner of the project for the role of a developer.',
      details: { field: 'who' },
    });
  if (wanted.who !== '' && !WHO.test(wanted.who)) throw mistake('who', 'identity keys with dots between them');
  const chosen = Object.entries(FILTER_CHOICES).map(([name, choices]) => {
    const value = query.get(name) ?? '';
    if (value !== '' && !choices.some((choice) => choice === value))
      throw mistake(name, `one of ${choices.join(', ')}`);
    return [name, value];
  });
  return { ...wanted, ...Object.fromEntries(chosen) };
}

function mistake(field: string, expected: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message: `${field}: expected ${expected}.`, details: { field } });
}

/**
 * Whether an entry is wanted, as it is now.
 * @param masks whether the viewer sees no raw ids; then no identity key finds a message
 */
export function isWanted(filter: LiveFilter, entry: LiveEntry, masks: boolean): boolean {
  const { type, name, id, who, surface, test, fate } = filter;
  const { message, rejection } = entry;
  if (fate !== '' && entry.fate !== fate) return false;
  if (surface !== '' && (message ?? rejection)?.surface !== surface) return false;
  if (type !== '' && message?.type !== type) return false;
  if (name !== '' && message?.name.toLowerCase().includes(name.toLowerCase()) !== true) return false;
  if (test !== '' && message?.test !== (test === 'yes')) return false;
  if (who !== '' && !isAbout(entry, who)) return false;
  return id === '' || isNamed(entry, id, masks);
}

/** Keys are of one length with dots between them, so each is found whole or not at all. */
function isAbout({ message }: LiveEntry, who: string): boolean {
  if (message === null) return false;
  const { anonymousKey, ownKeys } = message;
  return (anonymousKey !== '' && who.includes(anonymousKey)) || ownKeys.some((key) => who.includes(key));
}

function isNamed({ traceId, message }: LiveEntry, id: string, masks: boolean): boolean {
  if (traceId === id) return true;
  if (message === null) return false;
  if (masks) return message.messageId === id;
  return message.messageId === id || message.anonymousKey === id || message.ownKeys.includes(id);
}
