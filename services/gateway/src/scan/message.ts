import { CONSENT_STATUSES, ID_CODE_POINTS_MAX, IDENTITY_TYPES, MESSAGE_TYPES, SURFACES } from '@playline/contracts';
import { clearContext, scanContext } from './context.ts';
import {
  CLOSE_BRACE,
  COMMA,
  deepReads,
  endOfString,
  endOfValue,
  FAIL,
  hasSurrogateEscape,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  OPEN_BRACE,
  oddReads,
  QUOTE,
  repeatReads,
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { FIELD, type Field, type FieldName, ROW_SHIFT, ROW_WIDTH, type ScanState } from './ranges.ts';
import { endsVisible, isVisibleAt, NameTable, readMessageId, timestampOf, UNKNOWN } from './text.ts';

/** Fields of a message in the order of `FIELD`, so that the index of a name is its field. */
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
 * Reads one message from its opening brace into its row of the batch. A broken rule makes the message doubtful and does
 * not end the reading. The range of every field is kept; the last of equal keys wins.
 * @returns the place after it; `FAIL` when it is not JSON
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
        // The last of equal keys wins. The message becomes doubtful, so that values of the first are checked again.
        if ((seen & (1 << field)) !== 0) state.isDoubtful = true;
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
  if ((seen & REQUIRED_BITS) !== REQUIRED_BITS || !hasRequiredByType(state)) state.isDoubtful = true;
  return i + 1;
}

/** Clears the row of the message being scanned of an earlier batch's values. */
export function clearRow(state: ScanState): void {
  const { batch, message } = state;
  const row = message << ROW_SHIFT;
  for (let slot = row; slot < row + ROW_WIDTH; slot++) {
    batch.starts[slot] = 0;
    batch.ends[slot] = 0;
  }
  batch.escaped[message] = 0;
  state.tooDeep[message] = 0;
  state.odd[message] = 0;
  state.repeated[message] = 0;
  state.hasUuid[message] = 0;
  state.isDoubtful = false;
}

function scanField(state: ScanState, field: Field, at: number): number {
  const first = state.bytes[at];
  if (first === QUOTE) return scanText(state, field, at);
  if (first === OPEN_BRACE && field === FIELD.context) return scanContext(state, at);
  return scanOther(state, field, at);
}

/** Reads a value that is neither a string nor a context. */
function scanOther(state: ScanState, field: Field, at: number): number {
  const { bytes, batch, message } = state;
  const deepReadsBefore = deepReads.count;
  const oddReadsBefore = oddReads.count;
  const repeatReadsBefore = repeatReads.count;
  const end = endOfValue(bytes, at, VALUE_DEPTH);
  if (end === FAIL) return FAIL;
  const slot = (message << ROW_SHIFT) + field;
  const isNull = bytes[at] === LETTER_N;
  batch.starts[slot] = at;
  // Null is stored as an empty range, like an absent field.
  batch.ends[slot] = isNull ? at : end;
  batch.escaped[message]! &= ~(1 << field);
  state.tooDeep[message]! &= ~(1 << field);
  state.odd[message]! &= ~(1 << field);
  state.repeated[message]! &= ~(1 << field);
  if (field === FIELD.properties || field === FIELD.traits) {
    if (deepReads.count !== deepReadsBefore) state.tooDeep[message]! |= 1 << field;
    if (oddReads.count !== oddReadsBefore) {
      state.odd[message]! |= 1 << field;
      state.isDoubtful = true;
    }
    if (repeatReads.count !== repeatReadsBefore) {
      state.repeated[message]! |= 1 << field;
      state.isDoubtful = true;
    }
    if (deepReads.count !== deepReadsBefore || (!isNull && bytes[at] !== OPEN_BRACE)) state.isDoubtful = true;
  } else if (field === FIELD.test) {
    if (bytes[at] !== LETTER_T && bytes[at] !== LETTER_F && !isNull) state.isDoubtful = true;
  } else if (!isNull || (REQUIRED_BITS & (1 << field)) !== 0) {
    state.isDoubtful = true;
    if (field === FIELD.messageId) state.hasUuid[message] = 0;
  }
  if (field === FIELD.context && state.isDoubtful) clearContext(state);
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
    // Escapes in ids, enumerations and times are doubtful, because client libraries do not write them there.
    if (field !== FIELD.eventName || hasSurrogateEscape(bytes, at + 1, next - 1)) state.isDoubtful = true;
    if (field === FIELD.messageId) state.hasUuid[message] = 0;
  } else if (state.isDoubtful) batch.escaped[message]! &= ~(1 << field);
  if (!isAcceptable(state, field, slot)) {
    state.isDoubtful = true;
    if (field === FIELD.context) clearContext(state);
  }
  return next;
}

/** True when a string keeps the rules of its field. */
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
      const time = timestampOf(bytes, start, end);
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

/** False for an id that trimming would change or that may be blank. An empty id counts as absent. */
function isAcceptableId(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end) return true;
  return end - start <= ID_CODE_POINTS_MAX && isVisibleAt(bytes, start) && endsVisible(bytes, end);
}

/** True when the message has the fields that its type requires. */
function hasRequiredByType(state: ScanState): boolean {
  const { bytes, batch, message } = state;
  const row = message << ROW_SHIFT;
  switch (TYPE_TABLE.find(bytes, batch.starts[row + FIELD.type]!, batch.ends[row + FIELD.type]!)) {
    case TRACK:
      return isPresent(state, FIELD.eventName) && isVisibleAt(bytes, batch.starts[row + FIELD.eventName]!);
    case IDENTIFY:
      return isPresent(state, FIELD.userId);
    case ALIAS:
      return isPresent(state, FIELD.fromId) && isPresent(state, FIELD.toId) && !aliasesItself(state);
    default:
      return true;
  }
}

function isPresent({ batch, message }: ScanState, field: Field): boolean {
  const slot = (message << ROW_SHIFT) + field;
  return batch.ends[slot]! > batch.starts[slot]!;
}

/** True for an alias of an id to itself. Bytes can be compared: sound ids have no escapes and no outer white space. */
function aliasesItself({ bytes, batch, message }: ScanState): boolean {
  const row = message << ROW_SHIFT;
  const from = batch.starts[row + FIELD.fromId]!;
  const to = batch.starts[row + FIELD.toId]!;
  const length = batch.ends[row + FIELD.fromId]! - from;
  if (batch.ends[row + FIELD.toId]! - to !== length) return false;
  for (let i = 0; i < length; i++) if (bytes[from + i] !== bytes[to + i]) return false;
  return true;
}
