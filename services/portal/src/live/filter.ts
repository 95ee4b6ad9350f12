/** The filter of a subscription, as the address of the page has it. */
import { MESSAGE_TYPES, SURFACES } from '@playline/contracts';
import { PublicError } from '@playline/errors';
import { type LiveEntry, OUTCOMES } from './entry.ts';

/** '' matches everything. */
export interface LiveFilter {
  readonly type: string;
  /** Part of an event's name, in any case. */
  readonly name: string;
  /** Message id, trace id or identity key, in lower case. Never an id of a client, because filters are part of links. */
  readonly id: string;
  /** Identity keys joined by dots: messages that name any of them. */
  readonly who: string;
  readonly surface: string;
  /** `yes` or `no` */
  readonly test: string;
  readonly outcome: string;
}

export const NO_FILTER: LiveFilter = { type: '', name: '', id: '', who: '', surface: '', test: '', outcome: '' };

/** The values of each part that is not free text. */
export const FILTER_CHOICES = {
  type: MESSAGE_TYPES,
  surface: SURFACES,
  test: ['yes', 'no'],
  outcome: OUTCOMES,
} as const satisfies Partial<Record<keyof LiveFilter, readonly string[]>>;

const NAME_CHARACTERS_MAX = 200;
/** One id has a key as a visitor, as a user without a type, and as a user of each type. */
const WHO = /^[0-9a-f]{32}(\.[0-9a-f]{32}){0,15}$/;
const ID = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;

/**
 * @param mayName whether the reader may search for a person
 * @throws PublicError VALIDATION_ERROR that names the wrong part
 */
export function parseFilter(query: URLSearchParams, mayName: boolean): LiveFilter {
  const filter = {
    ...NO_FILTER,
    name: (query.get('name') ?? '').trim(),
    id: (query.get('id') ?? '').trim().toLowerCase(),
    who: query.get('who') ?? '',
  };
  if (filter.name.length > NAME_CHARACTERS_MAX) throw invalid('name', `at most ${NAME_CHARACTERS_MAX} characters`);
  if (filter.id !== '' && !ID.test(filter.id))
    throw invalid('id', 'a message id (UUID), a trace id or an identity key (32 hexadecimal digits)');
  if (filter.who !== '' && !mayName)
    throw new PublicError('VALIDATION_ERROR', {
      message:
        'who: your role cannot search for the messages of one person. Remove this filter, or request the developer role from an owner of the project.',
      details: { field: 'who' },
    });
  if (filter.who !== '' && !WHO.test(filter.who)) throw invalid('who', 'identity keys joined by dots');
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

/** @param masks whether the reader sees no raw ids; identity keys then match no message */
export function isWanted(filter: LiveFilter, entry: LiveEntry, masks: boolean): boolean {
  const { type, name, id, who, surface, test, outcome } = filter;
  const { message, rejection, traceId } = entry;
  if (outcome !== '' && entry.outcome !== outcome) return false;
  if (surface !== '' && (message ?? rejection)?.surface !== surface) return false;
  if (type !== '' && message?.type !== type) return false;
  if (name !== '' && message?.name.toLowerCase().includes(name.toLowerCase()) !== true) return false;
  if (test !== '' && message?.test !== (test === 'yes')) return false;
  // Keys have one length and dots between them, so `includes` matches whole keys only.
  if (who !== '' && !keysOf(entry).some((key) => who.includes(key))) return false;
  if (id === '' || traceId === id || message?.messageId === id) return true;
  return !masks && keysOf(entry).includes(id);
}

function keysOf({ message }: LiveEntry): readonly string[] {
  if (message === null) return [];
  return message.anonymousKey === '' ? message.ownKeys : [...message.ownKeys, message.anonymousKey];
}
