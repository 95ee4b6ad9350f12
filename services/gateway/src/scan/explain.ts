import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  type ContextString,
  DUPLICATE_ID,
  eventContextSchema,
  findTimeError,
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
  NOT_AN_OBJECT,
  ROW_SHIFT,
  readText,
  type ScanState,
} from './ranges.ts';
import { makeReadable } from './readable.ts';
import { isVisibleAt, parseTimestampBytes, readMessageId } from './text.ts';

/** A validation error, shared by all messages that have it. */
export interface MessageError {
  readonly error: RejectionError;
  /** Identifies the combination of field and code. */
  readonly ordinal: number;
  /** The error as JSON. */
  readonly text: string;
}

/** The ways in which a value can violate the rules of its field. */
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

function toMessageError(error: RejectionError): MessageError {
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
const ANY_TIME: TimeWindow = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** Returns the errors that the contract finds in one field. */
function validateByContract(message: unknown, field: string): readonly MessageError[] {
  const parsed = parseMessage(message, ANY_TIME);
  return parsed.ok ? [] : parsed.errors.filter((error) => error.field === field).map(toMessageError);
}

const FIELD_NAMES = Object.keys(FIELD) as FieldName[];

function createSample(kind: number, name: FieldName): unknown {
  const max = name in CONTEXT_CODE_POINTS_MAX ? CONTEXT_CODE_POINTS_MAX[name as ContextString] : ID_CODE_POINTS_MAX;
  const strings: Record<number, string> = {
    [KIND.surrogate]: '\ud800',
    [KIND.long]: 'x'.repeat(max + 1),
    [KIND.blank]: '',
    [KIND.blankAndLong]: ' '.repeat(max + 1),
    [KIND.string]: 'x',
  };
  const otherValues: Record<number, unknown> = {
    [KIND.boolean]: true,
    [KIND.number]: 1,
    [KIND.infinite]: Number.POSITIVE_INFINITY,
    [KIND.minusInfinite]: Number.NEGATIVE_INFINITY,
    [KIND.array]: [],
    [KIND.object]: {},
  };
  return strings[kind] ?? otherValues[kind];
}

const cache: (readonly MessageError[] | undefined)[] = new Array(FIELD_NAMES.length * KINDS);

/** Returns the errors for a field and a kind of value, by validating a sample with the contract. */
function getErrors(field: Field, kind: Kind): readonly MessageError[] {
  const slot = field * KINDS + kind;
  cache[slot] ??= validateSample(FIELD_NAMES[field]!, kind);
  return cache[slot];
}

function validateSample(name: FieldName, kind: Kind): readonly MessageError[] {
  const sample = createSample(kind, name);
  if (FIELD[name] < FIELD.library) return validateByContract({ ...VALID_MESSAGE, [name]: sample }, name);
  return validateByContract({ ...VALID_MESSAGE, context: { ...VALID_CONTEXT, [name]: sample } }, `context.${name}`);
}

const requiredBy = (type: string, field: string) => validateByContract({ ...VALID_MESSAGE, type }, field)[0]!;

/** Errors from rules that compare fields or apply to the whole message. */
export const MESSAGE_ERRORS = {
  trackNeedsEventName: requiredBy('track', 'eventName'),
  identifyNeedsUserId: requiredBy('identify', 'userId'),
  aliasNeedsFromId: requiredBy('alias', 'fromId'),
  aliasNeedsToId: requiredBy('alias', 'toId'),
  selfAlias: validateByContract({ ...VALID_MESSAGE, type: 'alias', fromId: 'a', toId: 'a' }, 'toId')[0]!,
  propertiesTooDeep: toMessageError(tooDeepError('properties')),
  traitsTooDeep: toMessageError(tooDeepError('traits')),
  tooLarge: toMessageError(TOO_LARGE),
  duplicateId: toMessageError(DUPLICATE_ID),
} as const;

const validateElement = (value: unknown) => validateByContract(value, 'message');
const ELEMENTS: Readonly<Record<string, readonly MessageError[]>> = {
  '"': validateElement('x'),
  '[': validateElement([]),
  n: validateElement(null),
  t: validateElement(true),
  f: validateElement(true),
};
const NUMBER = validateElement(1);
/** Numbers too large for a double, such as 1e999. */
const INFINITE = validateElement(Number.POSITIVE_INFINITY);
const MINUS_INFINITE = validateElement(Number.NEGATIVE_INFINITY);

/**
 * Returns the errors of an element that is not an object.
 * @param first the first character of the element
 * @param toNumber parses the element; called only for numbers
 */
function getElementErrors(first: string, toNumber: () => number): readonly MessageError[] {
  const errors = ELEMENTS[first];
  if (errors !== undefined) return errors;
  const value = toNumber();
  if (Number.isFinite(value)) return NUMBER;
  return value > 0 ? INFINITE : MINUS_INFINITE;
}

/** Fields in the order in which the contract lists errors. */
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
const PERSON_ID_FIELDS = new Set<Field>(PERSON_IDS.map((name) => FIELD[name]));
const TEXT_MAX = new Map<number, number>(
  Object.entries(CONTEXT_CODE_POINTS_MAX).map(([name, max]) => [FIELD[name as FieldName], max]),
);

/** The value is valid. */
const OK = -1;
/** A string, which must be examined further. */
const STRING = -2;
type Form = Kind | typeof STRING;

/** A number of at most this length without an exponent is finite. */
const FINITE_BYTES_MAX = 300;

/**
 * Returns the errors of an `UNCERTAIN` message, which are those that `validateBatch` returns. Uses the ranges from the
 * scan and decodes only individual strings. A message without errors is prepared for encoding.
 */
export function explain(state: ScanState, message: number): readonly MessageError[] {
  if (state.verdicts[message] === NOT_AN_OBJECT) {
    const { bytes, starts, ends } = state;
    const read = (end: number) => bytes.toString('latin1', starts[message]!, end);
    const errors = getElementErrors(read(starts[message]! + 1), () => Number(read(ends[message]!)));
    return isTooLarge(state, message) ? [...errors, MESSAGE_ERRORS.tooLarge] : errors;
  }
  const errors = new MessageValidator(state, message).validate();
  if (errors.length === 0) {
    dropBlankIds(state, message);
    makeReadable(state, message);
  }
  return errors;
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
    if (isBlank(readText(batch, message, field))) batch.ends[slot] = start;
  }
}

class MessageValidator {
  readonly #state: ScanState;
  readonly #message: number;
  readonly #errors: MessageError[] = [];
  /** Decoded strings by field. */
  readonly #texts: string[] = [];

  constructor(state: ScanState, message: number) {
    this.#state = state;
    this.#message = message;
  }

  validate(): readonly MessageError[] {
    const hasContext = this.#formOf(FIELD.context) === KIND.object;
    for (const field of ORDER) {
      if (field >= FIELD.library && !hasContext) continue;
      const kind = this.#kindOf(field);
      if (kind !== OK) for (const each of getErrors(field, kind)) this.#errors.push(each);
    }
    this.#checkFieldRelations();
    this.#checkTime();
    this.#checkSizes();
    return this.#errors;
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

  #readText(field: Field): string {
    this.#texts[field] ??= readText(this.#state.batch, this.#message, field);
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
    // Most strings do not need to be decoded.
    if (batch.ends[slot]! - start <= max && !isEscaped(batch, this.#message, field)) {
      if (!isRequired || (batch.ends[slot] !== start && isVisibleAt(batch.body, start))) return OK;
    }
    const text = this.#readText(field);
    if (PERSON_ID_FIELDS.has(field) && !text.isWellFormed()) return KIND.surrogate;
    const isMissing = isRequired && isBlank(text);
    if (hasCodePointsAtMost(text, max)) return isMissing ? KIND.blank : OK;
    return isMissing ? KIND.blankAndLong : KIND.long;
  }

  #kindOfOption(field: Field, options: readonly string[]): Kind | typeof OK {
    const text = this.#readText(field);
    if (options.includes(text)) return OK;
    if (!text.isWellFormed()) return KIND.surrogate;
    return isBlank(text) ? KIND.blank : KIND.string;
  }

  #kindOfId(): Kind | typeof OK {
    const state = this.#state;
    if (state.hasUuid[this.#message] === 1) return OK;
    const text = this.#readText(FIELD.messageId);
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
      ? parseTimestamp(this.#readText(FIELD.eventTimestamp))
      : parseTimestampBytes(bytes, batch.starts[slot]!, batch.ends[slot]!);
    batch.eventTimes[this.#message] = time;
    if (!Number.isNaN(time)) return OK;
    return isBlank(this.#readText(FIELD.eventTimestamp)) ? KIND.blank : KIND.string;
  }

  /** Checks rules that compare fields, even if one of the fields is invalid. */
  #checkFieldRelations(): void {
    if (this.#formOf(FIELD.type) !== STRING) return;
    const type = this.#readText(FIELD.type);
    if (type === 'track') this.#require(FIELD.eventName, MESSAGE_ERRORS.trackNeedsEventName);
    if (type === 'identify') this.#require(FIELD.userId, MESSAGE_ERRORS.identifyNeedsUserId);
    if (type !== 'alias') return;
    this.#require(FIELD.fromId, MESSAGE_ERRORS.aliasNeedsFromId);
    this.#require(FIELD.toId, MESSAGE_ERRORS.aliasNeedsToId);
    if (this.#isSelfAlias()) this.#add(MESSAGE_ERRORS.selfAlias);
  }

  #require(field: Field, error: MessageError): void {
    const form = this.#formOf(field);
    if (form === KIND.absent || (form === STRING && isBlank(this.#readText(field)))) this.#add(error);
  }

  #isSelfAlias(): boolean {
    if (this.#formOf(FIELD.fromId) !== STRING || this.#formOf(FIELD.toId) !== STRING) return false;
    const from = this.#readText(FIELD.fromId).trim();
    return from !== '' && from === this.#readText(FIELD.toId).trim();
  }

  /** Adds an error unless the message already has an error with this field and code. */
  #add(error: MessageError): void {
    if (!this.#errors.some(({ ordinal }) => ordinal === error.ordinal)) this.#errors.push(error);
  }

  #checkTime(): void {
    if (this.#formOf(FIELD.eventTimestamp) !== STRING) return;
    const error = findTimeError(this.#state.batch.eventTimes[this.#message]!, this.#state);
    if (error !== null) this.#errors.push(toMessageError(error));
  }

  #checkSizes(): void {
    const isTooDeep = (field: Field) =>
      (this.#state.tooDeep[this.#message]! & (1 << field)) !== 0 && this.#formOf(field) === KIND.object;
    if (isTooDeep(FIELD.properties)) this.#errors.push(MESSAGE_ERRORS.propertiesTooDeep);
    if (isTooDeep(FIELD.traits)) this.#errors.push(MESSAGE_ERRORS.traitsTooDeep);
    if (isTooLarge(this.#state, this.#message)) this.#errors.push(MESSAGE_ERRORS.tooLarge);
  }
}

/** Returns `OK` if the value has the required kind. */
function kindUnless(form: Form, kind: Kind): Kind | typeof OK {
  if (form === kind) return OK;
  return form === STRING ? KIND.string : form;
}
