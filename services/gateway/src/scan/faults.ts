import {
  CONTEXT_CODE_POINTS_MAX,
  type ContextString,
  DUPLICATE_ID,
  EVENT_AGE_MAX_MS,
  ID_CODE_POINTS_MAX,
  parseMessage,
  type RejectionError,
  type TimeWindow,
  TOO_LARGE,
  tooDeepError,
} from '@playline/contracts';
import { FIELD, type Field, type FieldName } from './ranges.ts';

/** An error of the contract, built once and shared by all messages that have it. */
export interface Fault {
  readonly error: RejectionError;
  /** The same number for the same field and code. */
  readonly place: number;
  /** Its JSON text in an answer. */
  readonly text: string;
}

/** How a value breaks the rules of its field. */
export const KIND = {
  absent: 0,
  boolean: 1,
  number: 2,
  infinite: 3,
  array: 4,
  object: 5,
  surrogate: 6,
  long: 7,
  blank: 8,
  blankAndLong: 9,
  /** A string that is not a permitted value of the field. */
  string: 10,
  minusInfinite: 11,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];
const KINDS = Object.keys(KIND).length;

const places = new Map<string, number>();

function toFault(error: RejectionError): Fault {
  const name = `${error.field} ${error.code}`;
  const place = places.get(name) ?? places.size;
  places.set(name, place);
  return { error, place, text: JSON.stringify(error) };
}

const SOUND_MESSAGE = {
  type: 'page',
  messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-01-01T00:00:00Z',
};
const SOUND_CONTEXT = { library: 'l', libraryVersion: '1' };
const EVENT_TIME = Date.parse(SOUND_MESSAGE.eventTimestamp);
const ANY_TIME: TimeWindow = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** The contract's own errors for one field of a message. */
function askContract(message: unknown, field: string, window = ANY_TIME): readonly Fault[] {
  const parsed = parseMessage(message, window);
  return parsed.ok ? [] : parsed.errors.filter((error) => error.field === field).map(toFault);
}

const FIELD_NAMES = Object.keys(FIELD) as FieldName[];

/** A sample value of a kind. */
function sampleOf(kind: number, name: FieldName): unknown {
  const max = name in CONTEXT_CODE_POINTS_MAX ? CONTEXT_CODE_POINTS_MAX[name as ContextString] : ID_CODE_POINTS_MAX;
  const strings: Record<number, string> = {
    [KIND.surrogate]: '\ud800',
    [KIND.long]: 'x'.repeat(max + 1),
    [KIND.blank]: '',
    [KIND.blankAndLong]: ' '.repeat(max + 1),
    [KIND.string]: 'x',
  };
  const others: Record<number, unknown> = {
    [KIND.boolean]: true,
    [KIND.number]: 1,
    [KIND.infinite]: Number.POSITIVE_INFINITY,
    [KIND.minusInfinite]: Number.NEGATIVE_INFINITY,
    [KIND.array]: [],
    [KIND.object]: {},
  };
  return strings[kind] ?? others[kind];
}

const known: (readonly Fault[] | undefined)[] = new Array(FIELD_NAMES.length * KINDS);

/**
 * The faults of a field whose value is of a kind. The words come from the contract, which checks one sample of each
 * kind. So messages need not be parsed to find their faults.
 */
export function faultsOf(field: Field, kind: Kind): readonly Fault[] {
  const slot = field * KINDS + kind;
  known[slot] ??= askAbout(FIELD_NAMES[field]!, kind);
  return known[slot];
}

function askAbout(name: FieldName, kind: Kind): readonly Fault[] {
  const sample = sampleOf(kind, name);
  if (FIELD[name] < FIELD.library) return askContract({ ...SOUND_MESSAGE, [name]: sample }, name);
  return askContract({ ...SOUND_MESSAGE, context: { ...SOUND_CONTEXT, [name]: sample } }, `context.${name}`);
}

const requiredBy = (type: string, field: string) => askContract({ ...SOUND_MESSAGE, type }, field)[0]!;

/** Faults between fields, and of a whole message. */
export const FAULT = {
  trackNeedsEventName: requiredBy('track', 'eventName'),
  identifyNeedsUserId: requiredBy('identify', 'userId'),
  aliasNeedsFromId: requiredBy('alias', 'fromId'),
  aliasNeedsToId: requiredBy('alias', 'toId'),
  aliasesItself: askContract({ ...SOUND_MESSAGE, type: 'alias', fromId: 'a', toId: 'a' }, 'toId')[0]!,
  tooOld: askContract(SOUND_MESSAGE, 'eventTimestamp', { ...ANY_TIME, fromMs: EVENT_TIME + EVENT_AGE_MAX_MS })[0]!,
  tooFarAhead: askContract(SOUND_MESSAGE, 'eventTimestamp', { ...ANY_TIME, toMs: EVENT_TIME - EVENT_AGE_MAX_MS })[0]!,
  propertiesTooDeep: toFault(tooDeepError('properties')),
  traitsTooDeep: toFault(tooDeepError('traits')),
  tooLarge: toFault(TOO_LARGE),
  duplicateId: toFault(DUPLICATE_ID),
} as const;

const ofElement = (value: unknown) => askContract(value, 'message');
const ELEMENTS: Readonly<Record<string, readonly Fault[]>> = {
  '"': ofElement('x'),
  '[': ofElement([]),
  n: ofElement(null),
  t: ofElement(true),
  f: ofElement(true),
};
const NUMBER = ofElement(1);
/** Faults of numbers that JSON can write but a double cannot represent, such as 1e999. */
const INFINITE = ofElement(Number.POSITIVE_INFINITY);
const MINUS_INFINITE = ofElement(Number.NEGATIVE_INFINITY);

/**
 * The faults of an element that is not an object.
 * @param first the first character of its JSON text
 * @param toNumber computes its value; called for numbers only
 */
export function faultsOfElement(first: string, toNumber: () => number): readonly Fault[] {
  const known = ELEMENTS[first];
  if (known !== undefined) return known;
  const value = toNumber();
  if (Number.isFinite(value)) return NUMBER;
  return value > 0 ? INFINITE : MINUS_INFINITE;
}
