import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  type ContextString,
  DUPLICATE_ID,
  EVENT_AGE_MAX_MS,
  eventContextSchema,
  hasCodePointsAtMost,
  ID_CODE_POINTS_MAX,
  IDENTITY_TYPES,
  isBlank,
  MESSAGE_BYTES_MAX,
  MESSAGE_TYPES,
  messageSchema,
  PERSON_IDS,
  parseMessage,
  parseTimestamp,
  type RejectionError,
  SURFACES,
  type TimeWindow,
  TOO_LARGE,
  tooDeepError,
} from '@playline/contracts';
import { CHAR_F, CHAR_T, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './json.ts';
import {
  FIELD,
  type Field,
  type FieldName,
  isEscaped,
  NO_OBJECT,
  ROW_SHIFT,
  type ScanState,
  textOf,
} from './ranges.ts';
import { makeReadable } from './readable.ts';
import { isVisibleAt, readMessageId, timestampOf } from './text.ts';

/** An error of the contract, shared by all messages that have it. */
export interface Fault {
  readonly error: RejectionError;
  /** One number for each field and code. */
  readonly ordinal: number;
  /** Its JSON text. */
  readonly text: string;
}

/** How a value breaks the rules of its field. */
const KIND = {
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
  /** A string that the field does not allow. */
  string: 10,
  minusInfinite: 11,
} as const;
type Kind = (typeof KIND)[keyof typeof KIND];
const KINDS = Object.keys(KIND).length;

const ordinals = new Map<string, number>();

function toFault(error: RejectionError): Fault {
  const name = `${error.field} ${error.code}`;
  const ordinal = ordinals.get(name) ?? ordinals.size;
  ordinals.set(name, ordinal);
  return { error, ordinal, text: JSON.stringify(error) };
}

const VALID_MESSAGE = {
  type: 'page',
  messageId: '0192f1c0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-01-01T00:00:00Z',
};
const VALID_CONTEXT = { library: 'l', libraryVersion: '1' };
const EVENT_TIME = Date.parse(VALID_MESSAGE.eventTimestamp);
const ANY_TIME: TimeWindow = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** The contract's errors of one field. */
function validateByContract(message: unknown, field: string, window = ANY_TIME): readonly Fault[] {
  const parsed = parseMessage(message, window);
  return parsed.ok ? [] : parsed.errors.filter((error) => error.field === field).map(toFault);
}

const FIELD_NAMES = Object.keys(FIELD) as FieldName[];

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

/** The faults of a field whose value is of a kind, from the contract's check of a sample. */
function faultsOf(field: Field, kind: Kind): readonly Fault[] {
  const slot = field * KINDS + kind;
  known[slot] ??= faultsOfSample(FIELD_NAMES[field]!, kind);
  return known[slot];
}

function faultsOfSample(name: FieldName, kind: Kind): readonly Fault[] {
  const sample = sampleOf(kind, name);
  if (FIELD[name] < FIELD.library) return validateByContract({ ...VALID_MESSAGE, [name]: sample }, name);
  return validateByContract({ ...VALID_MESSAGE, context: { ...VALID_CONTEXT, [name]: sample } }, `context.${name}`);
}

const requiredBy = (type: string, field: string) => validateByContract({ ...VALID_MESSAGE, type }, field)[0]!;

/** Faults between fields, and of a whole message. */
export const FAULT = {
  trackNeedsEventName: requiredBy('track', 'eventName'),
  identifyNeedsUserId: requiredBy('identify', 'userId'),
  aliasNeedsFromId: requiredBy('alias', 'fromId'),
  aliasNeedsToId: requiredBy('alias', 'toId'),
  aliasesItself: validateByContract({ ...VALID_MESSAGE, type: 'alias', fromId: 'a', toId: 'a' }, 'toId')[0]!,
  tooOld: validateByContract(VALID_MESSAGE, 'eventTimestamp', {
    ...ANY_TIME,
    fromMs: EVENT_TIME + EVENT_AGE_MAX_MS,
  })[0]!,
  tooFarAhead: validateByContract(VALID_MESSAGE, 'eventTimestamp', {
    ...ANY_TIME,
    toMs: EVENT_TIME - EVENT_AGE_MAX_MS,
  })[0]!,
  propertiesTooDeep: toFault(tooDeepError('properties')),
  traitsTooDeep: toFault(tooDeepError('traits')),
  tooLarge: toFault(TOO_LARGE),
  duplicateId: toFault(DUPLICATE_ID),
} as const;

const ofElement = (value: unknown) => validateByContract(value, 'message');
const ELEMENTS: Readonly<Record<string, readonly Fault[]>> = {
  '"': ofElement('x'),
  '[': ofElement([]),
  n: ofElement(null),
  t: ofElement(true),
  f: ofElement(true),
};
const NUMBER = ofElement(1);
/** Numbers that no double holds, such as 1e999. */
const INFINITE = ofElement(Number.POSITIVE_INFINITY);
const MINUS_INFINITE = ofElement(Number.NEGATIVE_INFINITY);

/**
 * The faults of an element that is not an object.
 * @param first character of its JSON text
 * @param toNumber called for numbers only
 */
function faultsOfElement(first: string, toNumber: () => number): readonly Fault[] {
  const known = ELEMENTS[first];
  if (known !== undefined) return known;
  const value = toNumber();
  if (Number.isFinite(value)) return NUMBER;
  return value > 0 ? INFINITE : MINUS_INFINITE;
}

/** In the order of the contract's errors. */
const ORDER: readonly Field[] = (Object.keys(messageSchema.shape) as FieldName[]).flatMap((name) => [
  FIELD[name],
  ...(name === 'context' ? (Object.keys(eventContextSchema.shape) as FieldName[]).map((inner) => FIELD[inner]) : []),
]);

const OPTIONS: Readonly<Partial<Record<Field, readonly string[]>>> = {
  [FIELD.type]: MESSAGE_TYPES,
  [FIELD.identityType]: IDENTITY_TYPES,
  [FIELD.fromType]: IDENTITY_TYPES,
  [FIELD.toType]: IDENTITY_TYPES,
  [FIELD.surface]: SURFACES,
  [FIELD.consentLevel]: CONSENT_STATUSES,
};
const REQUIRED = new Set<Field>([
  FIELD.type,
  FIELD.messageId,
  FIELD.eventTimestamp,
  FIELD.library,
  FIELD.libraryVersion,
]);
const OPTIONAL_IDS = [
  FIELD.anonymousId,
  FIELD.deviceId,
  FIELD.sessionId,
  FIELD.userId,
  FIELD.fromId,
  FIELD.toId,
] as const;
const IDS_OF_PERSONS = new Set<Field>(PERSON_IDS.map((name) => FIELD[name]));
const TEXT_MAX = new Map<number, number>(
  Object.entries(CONTEXT_CODE_POINTS_MAX).map(([name, max]) => [FIELD[name as FieldName], max]),
);

/** The value is valid. */
const OK = -1;
/** A string, whose text decides. */
const STRING = -2;
type Form = Kind | typeof STRING;

/** Without an exponent such a number is finite. */
const FINITE_BYTES_MAX = 300;

/**
 * Finds the faults of an uncertain message from the ranges of the scan; only single strings are decoded. A message
 * without faults is prepared for encoding. The result equals that of `validateBatch`.
 */
export function explain(state: ScanState, message: number): readonly Fault[] {
  if (state.verdicts[message] === NO_OBJECT) {
    const { bytes, starts, ends } = state;
    const textTo = (end: number) => bytes.toString('latin1', starts[message]!, end);
    const faults = faultsOfElement(textTo(starts[message]! + 1), () => Number(textTo(ends[message]!)));
    return isTooLarge(state, message) ? [...faults, FAULT.tooLarge] : faults;
  }
  const faults = new Explanation(state, message).faults();
  if (faults.length === 0) {
    dropBlankIds(state, message);
    makeReadable(state, message);
  }
  return faults;
}

function isTooLarge({ starts, ends }: ScanState, message: number): boolean {
  return ends[message]! - starts[message]! > MESSAGE_BYTES_MAX;
}

/** Contract, "Blank optional id". */
function dropBlankIds({ batch }: ScanState, message: number): void {
  for (const field of OPTIONAL_IDS) {
    const slot = (message << ROW_SHIFT) + field;
    const [start, end] = [batch.starts[slot]!, batch.ends[slot]!];
    if (start === end || (isVisibleAt(batch.body, start) && !isEscaped(batch, message, field))) continue;
    if (isBlank(textOf(batch, message, field))) batch.ends[slot] = start;
  }
}

class Explanation {
  readonly #state: ScanState;
  readonly #message: number;
  readonly #faults: Fault[] = [];
  /** By field. */
  readonly #texts: string[] = [];

  constructor(state: ScanState, message: number) {
    this.#state = state;
    this.#message = message;
  }

  faults(): readonly Fault[] {
    const hasContext = this.#formOf(FIELD.context) === KIND.object;
    for (const field of ORDER) {
      if (field >= FIELD.library && !hasContext) continue;
      const kind = this.#kindOf(field);
      if (kind !== OK) for (const each of faultsOf(field, kind)) this.#faults.push(each);
    }
    this.#checkBetween();
    this.#checkTime();
    this.#checkSizes();
    return this.#faults;
  }

  #formOf(field: Field): Form {
    const { bytes, batch } = this.#state;
    const slot = (this.#message << ROW_SHIFT) + field;
    const start = batch.starts[slot]!;
    if (start === 0) return KIND.absent;
    if (bytes[start - 1] === QUOTE) return STRING;
    if (batch.ends[slot] === start) return KIND.absent;
    switch (bytes[start]) {
      case OPEN_BRACE:
        return KIND.object;
      case OPEN_BRACKET:
        return KIND.array;
      case CHAR_T:
      case CHAR_F:
        return KIND.boolean;
      default:
        return this.#formOfNumber(slot);
    }
  }

  #formOfNumber(slot: number): Form {
    const { batch } = this.#state;
    const [start, end] = [batch.starts[slot]!, batch.ends[slot]!];
    const text = batch.body.toString('latin1', start, end);
    if (text.length <= FINITE_BYTES_MAX && !/e/i.test(text)) return KIND.number;
    const value = Number(text);
    if (Number.isFinite(value)) return KIND.number;
    return value > 0 ? KIND.infinite : KIND.minusInfinite;
  }

  #textOf(field: Field): string {
    this.#texts[field] ??= textOf(this.#state.batch, this.#message, field);
    return this.#texts[field];
  }

  #kindOf(field: Field): Kind | typeof OK {
    const form = this.#formOf(field);
    if (form === KIND.absent) return REQUIRED.has(field) ? form : OK;
    switch (field) {
      case FIELD.context:
      case FIELD.properties:
      case FIELD.traits:
        return kindUnless(form, KIND.object);
      case FIELD.test:
        return kindUnless(form, KIND.boolean);
      case FIELD.screenDensity:
        return kindUnless(form, KIND.number);
    }
    if (form !== STRING) return form;
    if (field === FIELD.messageId) return this.#kindOfId();
    if (field === FIELD.eventTimestamp) return this.#kindOfTime();
    const options = OPTIONS[field];
    return options === undefined ? this.#kindOfText(field) : this.#kindOfOption(field, options);
  }

  #kindOfText(field: Field): Kind | typeof OK {
    const { batch } = this.#state;
    const slot = (this.#message << ROW_SHIFT) + field;
    const start = batch.starts[slot]!;
    const max = TEXT_MAX.get(field) ?? ID_CODE_POINTS_MAX;
    const isRequired = REQUIRED.has(field);
    // Usually nothing is decoded.
    if (batch.ends[slot]! - start <= max && !isEscaped(batch, this.#message, field)) {
      if (!isRequired || (batch.ends[slot] !== start && isVisibleAt(batch.body, start))) return OK;
    }
    const text = this.#textOf(field);
    if (IDS_OF_PERSONS.has(field) && !text.isWellFormed()) return KIND.surrogate;
    const isMissing = isRequired && isBlank(text);
    if (hasCodePointsAtMost(text, max)) return isMissing ? KIND.blank : OK;
    return isMissing ? KIND.blankAndLong : KIND.long;
  }

  #kindOfOption(field: Field, options: readonly string[]): Kind | typeof OK {
    const text = this.#textOf(field);
    if (options.includes(text)) return OK;
    if (!text.isWellFormed()) return KIND.surrogate;
    return isBlank(text) ? KIND.blank : KIND.string;
  }

  #kindOfId(): Kind | typeof OK {
    const state = this.#state;
    if (state.hasUuid[this.#message] === 1) return OK;
    const text = this.#textOf(FIELD.messageId);
    if (isBlank(text)) return KIND.blank;
    const bytes = Buffer.from(text);
    const isUuid = readMessageId({ bytes, batch: state.batch, message: this.#message }, 0, bytes.length);
    if (!isUuid) return KIND.string;
    state.hasUuid[this.#message] = 1;
    return OK;
  }

  #kindOfTime(): Kind | typeof OK {
    const { bytes, batch } = this.#state;
    const slot = (this.#message << ROW_SHIFT) + FIELD.eventTimestamp;
    const time = isEscaped(batch, this.#message, FIELD.eventTimestamp)
      ? parseTimestamp(this.#textOf(FIELD.eventTimestamp))
      : timestampOf(bytes, batch.starts[slot]!, batch.ends[slot]!);
    batch.eventTimes[this.#message] = time;
    if (!Number.isNaN(time)) return OK;
    return isBlank(this.#textOf(FIELD.eventTimestamp)) ? KIND.blank : KIND.string;
  }

  /** Checked even when a field failed. */
  #checkBetween(): void {
    if (this.#formOf(FIELD.type) !== STRING) return;
    const type = this.#textOf(FIELD.type);
    if (type === 'track') this.#require(FIELD.eventName, FAULT.trackNeedsEventName);
    if (type === 'identify') this.#require(FIELD.userId, FAULT.identifyNeedsUserId);
    if (type !== 'alias') return;
    this.#require(FIELD.fromId, FAULT.aliasNeedsFromId);
    this.#require(FIELD.toId, FAULT.aliasNeedsToId);
    if (this.#aliasesItself()) this.#add(FAULT.aliasesItself);
  }

  #require(field: Field, fault: Fault): void {
    const form = this.#formOf(field);
    if (form === KIND.absent || (form === STRING && isBlank(this.#textOf(field)))) this.#add(fault);
  }

  #aliasesItself(): boolean {
    if (this.#formOf(FIELD.fromId) !== STRING || this.#formOf(FIELD.toId) !== STRING) return false;
    const from = this.#textOf(FIELD.fromId).trim();
    return from !== '' && from === this.#textOf(FIELD.toId).trim();
  }

  /** Each field and code once. */
  #add(fault: Fault): void {
    if (!this.#faults.some(({ ordinal }) => ordinal === fault.ordinal)) this.#faults.push(fault);
  }

  #checkTime(): void {
    const { batch, fromMs, toMs } = this.#state;
    if (this.#formOf(FIELD.eventTimestamp) !== STRING) return;
    const time = batch.eventTimes[this.#message]!;
    if (time < fromMs) this.#faults.push(FAULT.tooOld);
    else if (time > toMs) this.#faults.push(FAULT.tooFarAhead);
  }

  #checkSizes(): void {
    const isTooDeep = (field: Field) =>
      (this.#state.tooDeep[this.#message]! & (1 << field)) !== 0 && this.#formOf(field) === KIND.object;
    if (isTooDeep(FIELD.properties)) this.#faults.push(FAULT.propertiesTooDeep);
    if (isTooDeep(FIELD.traits)) this.#faults.push(FAULT.traitsTooDeep);
    if (isTooLarge(this.#state, this.#message)) this.#faults.push(FAULT.tooLarge);
  }
}

/** `OK` for the required kind. */
function kindUnless(form: Form, kind: Kind): Kind | typeof OK {
  if (form === kind) return OK;
  return form === STRING ? KIND.string : form;
}
