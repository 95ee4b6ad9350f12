import { isUtf8 } from 'node:buffer';
import {
  BATCH_MESSAGES_MAX,
  isBlank,
  MESSAGE_BYTES_MAX,
  type TimeWindow,
  withoutByteOrderMark,
} from '@playline/contracts';
import { explain, MESSAGE_ERRORS, type MessageError } from './explain.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  endOfValue,
  FAIL,
  isSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  resetKeys,
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { clearRow, scanMessage } from './message.ts';
import {
  createScannedBatch,
  FIELD,
  NOT_AN_OBJECT,
  ROW_SHIFT,
  readText,
  type ScanState,
  UNCERTAIN,
  UUID_BYTES,
  VALID,
} from './ranges.ts';
import { NameTable, UNKNOWN } from './text.ts';

export const BODY_ERROR = {
  /** Not UTF-8, or not JSON. */
  notJson: -1,
  notAnObject: -2,
  noMessages: -3,
  tooFew: -4,
  tooMany: -5,
} as const;

/**
 * Scans a body in one pass, which checks the JSON grammar and finds the fields of every message as JSON.parse would. A
 * message is `VALID` only if the contract accepts it. Synchronous and not reentrant; each scan overwrites the state.
 */
export interface Scanner {
  readonly state: ScanState;
  /** @returns the number of messages, or one of `BODY_ERROR`; `state.verdicts` contains a verdict on each message */
  scan(body: Buffer, window: TimeWindow): number;
}

export function createScanner(): Scanner {
  const batch = createScannedBatch();
  const state: ScanState = {
    bytes: batch.body,
    batch,
    message: 0,
    fromMs: 0,
    toMs: 0,
    nowMs: undefined,
    isUncertain: false,
    verdicts: new Uint8Array(BATCH_MESSAGES_MAX),
    starts: new Int32Array(BATCH_MESSAGES_MAX),
    ends: new Int32Array(BATCH_MESSAGES_MAX),
    hasUuid: new Uint8Array(BATCH_MESSAGES_MAX),
    tooDeep: new Int32Array(BATCH_MESSAGES_MAX),
    unsafe: new Int32Array(BATCH_MESSAGES_MAX),
    duplicateKeys: new Int32Array(BATCH_MESSAGES_MAX),
  };
  return {
    state,
    scan: (received, window) => {
      const body = withoutByteOrderMark(received);
      state.bytes = copyWithPadding(state.bytes, body);
      resetKeys(body.length);
      state.fromMs = window.fromMs;
      state.toMs = window.toMs;
      state.nowMs = window.nowMs;
      batch.body = state.bytes.subarray(0, body.length);
      batch.count = 0;
      // Decoding without a check would replace invalid bytes with U+FFFD.
      return isUtf8(body) ? scanBody(state, body.length) : BODY_ERROR.notJson;
    },
  };
}

/** Zeros after the body, which terminate every loop. No read goes beyond them. */
const PADDING_BYTES = 8;

/**
 * Copies a body and appends zeros, so that no read is out of bounds. Out-of-bounds reads made some bodies four times
 * slower.
 */
function copyWithPadding(previous: Buffer, body: Buffer): Buffer {
  const length = body.length + PADDING_BYTES;
  const bytes = previous.length < length ? Buffer.allocUnsafeSlow(length) : previous;
  body.copy(bytes);
  bytes.fill(0, body.length, length);
  return bytes;
}

const BODY_TABLE = new NameTable(['messages']);
/** Nesting depth of a field of the body. */
const VALUE_DEPTH = 1;
const ELEMENT_DEPTH = 2;

function endOfBody(bytes: Uint8Array, length: number): number {
  let end = length;
  while (end > 0 && isSpace(bytes[end - 1]!)) end--;
  return end;
}

/** Scans an object with a `messages` array. If a key occurs more than once, the last value wins. */
function scanBody(state: ScanState, bodyLength: number): number {
  const { bytes } = state;
  const length = endOfBody(bytes, bodyLength);
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_BRACE)
    return endOfValue(bytes, i, 0) === length && length > 0 ? BODY_ERROR.notAnObject : BODY_ERROR.notJson;
  i = skipSpace(bytes, i + 1);
  let found: number = BODY_ERROR.noMessages;
  let isSeen = false;
  // Offset of the last value if `messages` occurs more than once.
  let lastStart = 0;
  if (bytes[i] === CLOSE_BRACE) return i === length - 1 ? found : BODY_ERROR.notJson;
  for (;;) {
    if (bytes[i] !== QUOTE) return BODY_ERROR.notJson;
    const keyEnd = endOfString(bytes, i);
    if (keyEnd === FAIL) return BODY_ERROR.notJson;
    const name =
      keyEnd > FAIL ? BODY_TABLE.find(bytes, i + 1, keyEnd - 1) : BODY_TABLE.findEscaped(bytes, i + 1, -keyEnd - 1);
    i = skipColon(bytes, Math.abs(keyEnd));
    if (i === FAIL) return BODY_ERROR.notJson;
    if (name !== UNKNOWN && isSeen) lastStart = i;
    if (name !== UNKNOWN && !isSeen && bytes[i] === OPEN_BRACKET) {
      i = scanMessages(state, i);
      found = checkCount(state);
    } else i = endOfValue(bytes, i, VALUE_DEPTH);
    isSeen ||= name !== UNKNOWN;
    if (i === FAIL) return BODY_ERROR.notJson;
    i = skipSpace(bytes, i);
    if (bytes[i] === CLOSE_BRACE) {
      if (i !== length - 1) return BODY_ERROR.notJson;
      return lastStart === 0 ? found : scanLastMessages(state, lastStart);
    }
    if (bytes[i] !== COMMA) return BODY_ERROR.notJson;
    i = skipSpace(bytes, i + 1);
  }
}

/** Scans the last `messages` value, whose grammar has already been checked. */
function scanLastMessages(state: ScanState, at: number): number {
  if (state.bytes[at] !== OPEN_BRACKET) return BODY_ERROR.noMessages;
  scanMessages(state, at);
  return checkCount(state);
}

function checkCount({ batch: { count } }: ScanState): number {
  if (count === 0) return BODY_ERROR.tooFew;
  return count > BATCH_MESSAGES_MAX ? BODY_ERROR.tooMany : count;
}

/** Beyond the maximum number of messages, only the grammar is checked. */
function scanMessages(state: ScanState, at: number): number {
  const { bytes, batch } = state;
  batch.count = 0;
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return i + 1;
  for (;;) {
    const end = batch.count < BATCH_MESSAGES_MAX ? scanElement(state, i) : endOfValue(bytes, i, ELEMENT_DEPTH);
    if (end === FAIL) return FAIL;
    batch.count++;
    i = bytes[end]! <= SPACE ? skipSpace(bytes, end) : end;
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    if (bytes[i] !== COMMA) return FAIL;
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
  }
}

function scanElement(state: ScanState, at: number): number {
  const message = state.batch.count;
  state.message = message;
  state.starts[message] = at;
  if (state.bytes[at] !== OPEN_BRACE) {
    clearRow(state);
    state.verdicts[message] = NOT_AN_OBJECT;
    state.ends[message] = endOfValue(state.bytes, at, ELEMENT_DEPTH);
    return state.ends[message]!;
  }
  const end = scanMessage(state, at);
  state.ends[message] = end;
  const isValid = !state.isUncertain && end - at <= MESSAGE_BYTES_MAX;
  state.verdicts[message] = isValid ? VALID : UNCERTAIN;
  return end;
}

export interface Rejection {
  /** Index of the message in the batch. */
  readonly message: number;
  readonly errors: readonly MessageError[];
}

/** An entry of the response, for all messages with the same id. */
export interface RejectionEntry {
  /** The id as written in the first of these messages. */
  readonly messageId: string;
  readonly errors: readonly MessageError[];
}

const NO_REJECTIONS: readonly [] = [];

/**
 * Validates the messages of a scanned batch and detects duplicate ids. Only uncertain messages are examined again
 * (`explain`). Sets `batch.accepted`. Returns what `validateBatch` returns.
 */
export function validateScanned(state: ScanState): {
  readonly rejected: readonly Rejection[];
  readonly entries: readonly RejectionEntry[];
} {
  const { batch, verdicts } = state;
  batch.accepted.fill(1, 0, batch.count);
  const errors: (readonly MessageError[] | undefined)[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (verdicts[message] === VALID) continue;
    const found = explain(state, message);
    if (found.length > 0) errors[message] = found;
  }
  const onDuplicates = (...messages: readonly number[]) => {
    for (const message of messages) {
      const previous = errors[message] ?? [];
      if (previous[0] !== MESSAGE_ERRORS.duplicateId) errors[message] = [MESSAGE_ERRORS.duplicateId, ...previous];
    }
  };
  findDuplicateUuids(state, onDuplicates);
  if (errors.length === 0) return { rejected: NO_REJECTIONS, entries: NO_REJECTIONS };
  const messageIds = new MessageIds(state);
  messageIds.findDuplicates(onDuplicates);
  const rejected: Rejection[] = [];
  const entries = new Map<string, Entry>();
  for (const [message, found] of errors.entries()) {
    if (found === undefined) continue;
    batch.accepted[message] = 0;
    rejected.push({ message, errors: found });
    const { echo, name } = messageIds.read(message);
    const entry = entries.get(name);
    if (entry === undefined) entries.set(name, new Entry(echo, found));
    else entry.add(found);
  }
  return { rejected, entries: [...entries.values()] };
}

class Entry implements RejectionEntry {
  readonly messageId: string;
  errors: readonly MessageError[];
  #ordinals: Set<number> | null = null;

  constructor(messageId: string, errors: readonly MessageError[]) {
    this.messageId = messageId;
    this.errors = errors;
  }

  /** Adds the errors of another message with the same id, without duplicates. */
  add(errors: readonly MessageError[]): void {
    const ordinals = this.#ordinals ?? new Set(this.errors.map(({ ordinal }) => ordinal));
    this.#ordinals = ordinals;
    const additional = errors.filter(({ ordinal }) => !ordinals.has(ordinal));
    if (additional.length === 0) return;
    for (const { ordinal } of additional) ordinals.add(ordinal);
    this.errors = [...this.errors, ...additional];
  }
}

interface MessageId {
  /** The id as returned to the client. */
  readonly echo: string;
  /** Messages with the same name share one entry. */
  readonly name: string;
  readonly isComparable: boolean;
}

const NO_ID: MessageId = { echo: '', name: '', isComparable: false };

/** Contract, "messageId", "Not an object", "Several messages without an id" and "Duplicate ids". */
class MessageIds {
  readonly #state: ScanState;
  readonly #cache: (MessageId | undefined)[] = [];

  constructor(state: ScanState) {
    this.#state = state;
  }

  read(message: number): MessageId {
    this.#cache[message] ??= this.#decode(message);
    return this.#cache[message];
  }

  #decode(message: number): MessageId {
    const { bytes, batch, verdicts } = this.#state;
    const slot = (message << ROW_SHIFT) + FIELD.messageId;
    const start = batch.starts[slot]!;
    if (verdicts[message] === NOT_AN_OBJECT || start === 0) return NO_ID;
    const isText = bytes[start - 1] === QUOTE;
    if (!isText && batch.ends[slot] === start) return NO_ID;
    const echo = readText(batch, message, FIELD.messageId);
    return { echo, name: echo.toLowerCase(), isComparable: isText && !isBlank(echo) };
  }

  /** Finds duplicate ids that are not UUIDs. */
  findDuplicates(onDuplicates: (message: number, first: number) => void): void {
    const { batch, hasUuid, verdicts } = this.#state;
    const firstByName = new Map<string, number>();
    for (let message = 0; message < batch.count; message++) {
      if (verdicts[message] === VALID || hasUuid[message] === 1) continue;
      const { name, isComparable } = this.read(message);
      if (!isComparable) continue;
      const first = firstByName.get(name);
      if (first === undefined) firstByName.set(name, message);
      else onDuplicates(message, first);
    }
  }
}

/** A power of two that is more than twice the maximum number of messages. */
const ID_SLOTS = 256;
const idSlots = new Int16Array(ID_SLOTS);

function isSameId(ids: Uint8Array, message: number, other: number): boolean {
  const start = message * UUID_BYTES;
  const otherStart = other * UUID_BYTES;
  for (let i = 0; i < UUID_BYTES; i++) if (ids[start + i] !== ids[otherStart + i]) return false;
  return true;
}

/**
 * Finds duplicate UUIDs by comparing their bytes, regardless of case.
 * @param onDuplicates called once for each message after the first
 */
function findDuplicateUuids(
  { batch, hasUuid }: ScanState,
  onDuplicates: (message: number, first: number) => void,
): void {
  if (batch.count < 2) return;
  const ids = batch.messageIds;
  idSlots.fill(-1);
  for (let message = 0; message < batch.count; message++) {
    if (hasUuid[message] === 0) continue;
    const id = message * UUID_BYTES;
    // Ids generated from a counter differ in their first or last bytes.
    let slot = (ids[id]! ^ (ids[id + 7]! * 5) ^ (ids[id + 15]! * 3)) & (ID_SLOTS - 1);
    let other = idSlots[slot]!;
    while (other >= 0 && !isSameId(ids, message, other)) {
      slot = (slot + 1) & (ID_SLOTS - 1);
      other = idSlots[slot]!;
    }
    if (other >= 0) onDuplicates(message, other);
    else idSlots[slot] = message;
  }
}
