import {
  CONSENT_STATUSES,
  CONTEXT_CODE_POINTS_MAX,
  type ContextString,
  ID_CODE_POINTS_MAX,
  IDENTITY_TYPES,
  MESSAGE_TYPES,
  SURFACES,
} from '@playline/contracts';
import {
  CHAR_E,
  CHAR_F,
  CHAR_N,
  CHAR_T,
  CLOSE_BRACE,
  COMMA,
  DIGIT_0,
  DIGIT_9,
  deepReads,
  duplicateKeyReads,
  endOfString,
  endOfValue,
  FAIL,
  hasSurrogateEscape,
  LOWER_CASE,
  MINUS,
  OPEN_BRACE,
  QUOTE,
  SPACE,
  skipColon,
  skipSpace,
  unsafeReads,
} from './json.ts';
import { FIELD, type Field, type FieldName, ROW_SHIFT, ROW_WIDTH, type ScanState } from './ranges.ts';
import { isVisibleAt, isVisibleBefore, NameTable, parseTimestampBytes, readMessageId, UNKNOWN } from './text.ts';

/** In the order of `FIELD`. */
const MESSAGE_NAMES = Object.keys(FIELD).slice(0, FIELD.context + 1) as FieldName[];
const MESSAGE_TABLE = new NameTable(MESSAGE_NAMES);

const TYPE_TABLE = new NameTable(MESSAGE_TYPES);
const IDENTITY_TYPE_TABLE = new NameTable(IDENTITY_TYPES);
const SURFACE_TABLE = new NameTable(SURFACES);
const CONSENT_TABLE = new NameTable(CONSENT_STATUSES);

const TRACK = MESSAGE_TYPES.indexOf('track');
const IDENTIFY = MESSAGE_TYPES.indexOf('identify');
const ALIAS = MESSAGE_TYPES.indexOf('alias');

/** type, messageId and eventTimestamp. */
const REQUIRED_BITS = (1 << FIELD.type) | (1 << FIELD.messageId) | (1 << FIELD.eventTimestamp);
/** Nesting depth of a field of a message. */
const VALUE_DEPTH = 3;

/**
 * Reads a message from its opening brace into its row. A violated rule makes the message uncertain but does not stop
 * the scan. If a key occurs more than once, the last value wins.
 * @returns the offset after the message, or `FAIL` if it is not JSON
 */
export function scanMessage(state: ScanState, at: number): number {
  const { bytes } = state;
  clearRow(state);
  let i = skipSpace(bytes, at + 1);
  let seen = 0;
  if (bytes[i] !== CLOSE_BRACE) {
    for (;;) {
      if (bytes[i] !== QUOTE) return FAIL;
      const keyEnd = endOfString(bytes, i);
      if (keyEnd === FAIL) return FAIL;
      const field =
        keyEnd > FAIL
          ? MESSAGE_TABLE.find(bytes, i + 1, keyEnd - 1)
          : MESSAGE_TABLE.findEscaped(bytes, i + 1, -keyEnd - 1);
      i = skipColon(bytes, Math.abs(keyEnd));
      if (i === FAIL) return FAIL;
      if (field === UNKNOWN) i = endOfValue(bytes, i, VALUE_DEPTH);
      else {
        // A field that occurs more than once makes the message uncertain.
        if ((seen & (1 << field)) !== 0) state.isUncertain = true;
        seen |= 1 << field;
        i = scanField(state, field as Field, i);
      }
      if (i === FAIL) return FAIL;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (bytes[i] === CLOSE_BRACE) break;
      if (bytes[i] !== COMMA) return FAIL;
      i++;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    }
  }
  if ((seen & REQUIRED_BITS) !== REQUIRED_BITS || !hasFieldsOfType(state)) state.isUncertain = true;
  return i + 1;
}

/** Clears values from an earlier batch. */
export function clearRow(state: ScanState): void {
  const { batch, message } = state;
  const row = message << ROW_SHIFT;
  for (let slot = row; slot < row + ROW_WIDTH; slot++) {
    batch.starts[slot] = 0;
    batch.ends[slot] = 0;
  }
  batch.escaped[message] = 0;
  state.tooDeep[message] = 0;
  state.unsafe[message] = 0;
  state.duplicateKeys[message] = 0;
  state.hasUuid[message] = 0;
  state.isUncertain = false;
}

function scanField(state: ScanState, field: Field, at: number): number {
  const first = state.bytes[at];
  if (first === QUOTE) return scanText(state, field, at);
  if (first === OPEN_BRACE && field === FIELD.context) return scanContext(state, at);
  return scanNonText(state, field, at);
}

/** Reads a value that is neither a string nor a context. */
function scanNonText(state: ScanState, field: Field, at: number): number {
  const { bytes, batch, message } = state;
  const deepReadsBefore = deepReads.count;
  const unsafeReadsBefore = unsafeReads.count;
  const duplicateKeyReadsBefore = duplicateKeyReads.count;
  const end = endOfValue(bytes, at, VALUE_DEPTH);
  if (end === FAIL) return FAIL;
  const slot = (message << ROW_SHIFT) + field;
  const isNull = bytes[at] === CHAR_N;
  batch.starts[slot] = at;
  // Null is stored as an empty range, like an absent field.
  batch.ends[slot] = isNull ? at : end;
  batch.escaped[message]! &= ~(1 << field);
  state.tooDeep[message]! &= ~(1 << field);
  state.unsafe[message]! &= ~(1 << field);
  state.duplicateKeys[message]! &= ~(1 << field);
  if (field === FIELD.properties || field === FIELD.traits) {
    if (deepReads.count !== deepReadsBefore) state.tooDeep[message]! |= 1 << field;
    if (unsafeReads.count !== unsafeReadsBefore) {
      state.unsafe[message]! |= 1 << field;
      state.isUncertain = true;
    }
    if (duplicateKeyReads.count !== duplicateKeyReadsBefore) {
      state.duplicateKeys[message]! |= 1 << field;
      state.isUncertain = true;
    }
    if (deepReads.count !== deepReadsBefore || (!isNull && bytes[at] !== OPEN_BRACE)) state.isUncertain = true;
  } else if (field === FIELD.test) {
    if (bytes[at] !== CHAR_T && bytes[at] !== CHAR_F && !isNull) state.isUncertain = true;
  } else if (!isNull || (REQUIRED_BITS & (1 << field)) !== 0) {
    state.isUncertain = true;
    if (field === FIELD.messageId) state.hasUuid[message] = 0;
  }
  if (field === FIELD.context && state.isUncertain) clearContext(state);
  return end;
}

function scanText(state: ScanState, field: Field, at: number): number {
  const { bytes, batch, message } = state;
  const read = endOfString(bytes, at);
  if (read === FAIL) return FAIL;
  const next = Math.abs(read);
  const slot = (message << ROW_SHIFT) + field;
  batch.starts[slot] = at + 1;
  batch.ends[slot] = next - 1;
  if (read < 0) {
    batch.escaped[message]! |= 1 << field;
    // Client libraries write escapes only in event names.
    if (field !== FIELD.eventName || hasSurrogateEscape(bytes, at + 1, next - 1)) state.isUncertain = true;
    if (field === FIELD.messageId) state.hasUuid[message] = 0;
  } else if (state.isUncertain) batch.escaped[message]! &= ~(1 << field);
  if (!isAcceptable(state, field, slot)) {
    state.isUncertain = true;
    if (field === FIELD.context) clearContext(state);
  }
  return next;
}

function isAcceptable(state: ScanState, field: Field, slot: number): boolean {
  const { bytes, batch } = state;
  const start = batch.starts[slot]!;
  const end = batch.ends[slot]!;
  switch (field) {
    case FIELD.type:
      return TYPE_TABLE.find(bytes, start, end) !== UNKNOWN;
    case FIELD.messageId: {
      const isUuid = readMessageId(state, start, end);
      state.hasUuid[state.message] = isUuid ? 1 : 0;
      return isUuid;
    }
    case FIELD.eventTimestamp: {
      const time = parseTimestampBytes(bytes, start, end);
      batch.eventTimes[state.message] = time;
      return time >= state.fromMs && time <= state.toMs;
    }
    case FIELD.identityType:
    case FIELD.fromType:
    case FIELD.toType:
      return IDENTITY_TYPE_TABLE.find(bytes, start, end) !== UNKNOWN;
    case FIELD.surface:
      return SURFACE_TABLE.find(bytes, start, end) !== UNKNOWN;
    case FIELD.consentLevel:
      return CONSENT_TABLE.find(bytes, start, end) !== UNKNOWN;
    case FIELD.eventName:
      return end - start <= ID_CODE_POINTS_MAX;
    case FIELD.anonymousId:
    case FIELD.deviceId:
    case FIELD.sessionId:
    case FIELD.userId:
    case FIELD.fromId:
    case FIELD.toId:
      return isAcceptableId(bytes, start, end);
    default:
      return false;
  }
}

/** Returns false for an id that may be blank or may need trimming. An empty id counts as absent. */
function isAcceptableId(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end) return true;
  return end - start <= ID_CODE_POINTS_MAX && isVisibleAt(bytes, start) && isVisibleBefore(bytes, end);
}

function hasFieldsOfType(state: ScanState): boolean {
  const { bytes, batch, message } = state;
  const row = message << ROW_SHIFT;
  switch (TYPE_TABLE.find(bytes, batch.starts[row + FIELD.type]!, batch.ends[row + FIELD.type]!)) {
    case TRACK:
      return isPresent(state, FIELD.eventName) && isVisibleAt(bytes, batch.starts[row + FIELD.eventName]!);
    case IDENTIFY:
      return isPresent(state, FIELD.userId);
    case ALIAS:
      return isPresent(state, FIELD.fromId) && isPresent(state, FIELD.toId) && !isSelfAlias(state);
    default:
      return true;
  }
}

function isPresent({ batch, message }: ScanState, field: Field): boolean {
  const slot = (message << ROW_SHIFT) + field;
  return batch.ends[slot]! > batch.starts[slot]!;
}

/** Compares bytes, because acceptable ids have no escapes and no white space around them. */
function isSelfAlias({ bytes, batch, message }: ScanState): boolean {
  const row = message << ROW_SHIFT;
  const from = batch.starts[row + FIELD.fromId]!;
  const to = batch.starts[row + FIELD.toId]!;
  const length = batch.ends[row + FIELD.fromId]! - from;
  if (batch.ends[row + FIELD.toId]! - to !== length) return false;
  for (let i = 0; i < length; i++) if (bytes[from + i] !== bytes[to + i]) return false;
  return true;
}

/** In the order of `FIELD`, starting at `FIELD.library`. */
const CONTEXT_NAMES = [
  'library',
  'libraryVersion',
  'userAgent',
  'locale',
  'timezone',
  'screen',
  'pageUrl',
  'pagePath',
  'pageReferrer',
  'pageTitle',
  'browserLanguage',
  'screenDensity',
] as const satisfies (ContextString | 'screenDensity')[];
const CONTEXT_TABLE = new NameTable(CONTEXT_NAMES);
const SCREEN_DENSITY = CONTEXT_NAMES.indexOf('screenDensity');
/** library and libraryVersion. */
const CONTEXT_REQUIRED_BITS = 0b11;

/** A limit that every string exceeds. */
const NOT_TEXT = -1;
/** Maximum bytes including escapes. A string never has more code points than bytes. */
const BYTES_MAX = Int32Array.from(CONTEXT_NAMES, (name) =>
  name === 'screenDensity' ? NOT_TEXT : CONTEXT_CODE_POINTS_MAX[name],
);

/** A number of at most this length without an exponent is finite. */
const NUMBER_BYTES_MAX = 32;
/** Nesting depth of a field of the context. */
const CONTEXT_VALUE_DEPTH = 4;

/**
 * Reads the context from its opening brace. A violated rule makes the message uncertain.
 * @returns the offset after the context, or `FAIL`
 */
function scanContext(state: ScanState, at: number): number {
  const { bytes, batch, message } = state;
  // Clears an earlier context of the same message.
  if (state.isUncertain) clearContext(state);
  let i = skipSpace(bytes, at + 1);
  let seen = 0;
  if (bytes[i] !== CLOSE_BRACE) {
    for (;;) {
      if (bytes[i] !== QUOTE) return FAIL;
      const keyEnd = endOfString(bytes, i);
      if (keyEnd === FAIL) return FAIL;
      const name =
        keyEnd > FAIL
          ? CONTEXT_TABLE.find(bytes, i + 1, keyEnd - 1)
          : CONTEXT_TABLE.findEscaped(bytes, i + 1, -keyEnd - 1);
      i = skipColon(bytes, Math.abs(keyEnd));
      if (i === FAIL) return FAIL;
      if (name === UNKNOWN) i = endOfValue(bytes, i, CONTEXT_VALUE_DEPTH);
      else {
        if ((seen & (1 << name)) !== 0) state.isUncertain = true;
        seen |= 1 << name;
        i = bytes[i] === QUOTE ? scanContextText(state, name, i) : scanContextNonText(state, name, i);
      }
      if (i === FAIL) return FAIL;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (bytes[i] === CLOSE_BRACE) break;
      if (bytes[i] !== COMMA) return FAIL;
      i++;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    }
  }
  if ((seen & CONTEXT_REQUIRED_BITS) !== CONTEXT_REQUIRED_BITS) state.isUncertain = true;
  const slot = (message << ROW_SHIFT) + FIELD.context;
  batch.starts[slot] = at;
  batch.ends[slot] = i + 1;
  return i + 1;
}

function clearContext({ batch, message }: ScanState): void {
  for (let name = 0; name < CONTEXT_NAMES.length; name++) {
    const field = FIELD.library + name;
    batch.starts[(message << ROW_SHIFT) + field] = 0;
    batch.ends[(message << ROW_SHIFT) + field] = 0;
    batch.escaped[message]! &= ~(1 << field);
  }
}

function scanContextText(state: ScanState, name: number, at: number): number {
  const { bytes, batch, message } = state;
  const read = endOfString(bytes, at);
  if (read === FAIL) return FAIL;
  const next = Math.abs(read);
  const start = at + 1;
  const end = next - 1;
  if (end - start > BYTES_MAX[name]!) state.isUncertain = true;
  if ((CONTEXT_REQUIRED_BITS & (1 << name)) !== 0 && (start === end || !isVisibleAt(bytes, start)))
    state.isUncertain = true;
  const field = FIELD.library + name;
  if (read < 0) {
    if (hasSurrogateEscape(bytes, start, end)) state.isUncertain = true;
    batch.escaped[message]! |= 1 << field;
  } else if (state.isUncertain) batch.escaped[message]! &= ~(1 << field);
  const slot = (message << ROW_SHIFT) + field;
  batch.starts[slot] = start;
  batch.ends[slot] = end;
  return next;
}

/** Reads null, the screen density, or a value of the wrong type. */
function scanContextNonText(state: ScanState, name: number, at: number): number {
  const { bytes, batch, message } = state;
  const end = endOfValue(bytes, at, CONTEXT_VALUE_DEPTH);
  if (end === FAIL) return FAIL;
  const field = FIELD.library + name;
  const slot = (message << ROW_SHIFT) + field;
  const isNull = bytes[at] === CHAR_N;
  batch.starts[slot] = at;
  // Null is stored as an empty range, like an absent field.
  batch.ends[slot] = isNull ? at : end;
  batch.escaped[message]! &= ~(1 << field);
  const isValid = isNull
    ? (CONTEXT_REQUIRED_BITS & (1 << name)) === 0
    : name === SCREEN_DENSITY && isPlainNumber(bytes, at, end);
  if (!isValid) state.isUncertain = true;
  return end;
}

/** Returns true for a short number without an exponent, which is always finite. */
function isPlainNumber(bytes: Uint8Array, start: number, end: number): boolean {
  const first = bytes[start]!;
  if ((first < DIGIT_0 || first > DIGIT_9) && first !== MINUS) return false;
  if (end - start > NUMBER_BYTES_MAX) return false;
  for (let i = start; i < end; i++) if ((bytes[i]! | LOWER_CASE) === CHAR_E) return false;
  return true;
}
