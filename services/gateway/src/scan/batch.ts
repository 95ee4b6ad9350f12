import { isUtf8 } from 'node:buffer';
import {
  BATCH_MESSAGES_MAX,
  isBlank,
  MESSAGE_BYTES_MAX,
  type TimeWindow,
  withoutByteOrderMark,
} from '@playline/contracts';
import { explain, FAULT, type Fault } from './explain.ts';
import {
  beginKeys,
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
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { clearRow, scanMessage } from './message.ts';
import {
  createScannedBatch,
  FIELD,
  NO_OBJECT,
  ROW_SHIFT,
  type ScanState,
  textOf,
  UNCERTAIN,
  UUID_BYTES,
  VALID,
} from './ranges.ts';
import { NameTable, UNKNOWN } from './text.ts';

export const BODY_FAULT = {
  /** Not UTF-8, or not JSON. */
  notJson: -1,
  notAnObject: -2,
  noMessages: -3,
  tooFew: -4,
  tooMany: -5,
} as const;

/**
 * Scans a body in one pass, which checks its grammar and finds the fields of every message as JSON.parse would. A
 * message is `VALID` only if the contract accepts it. Synchronous and not reentrant: the state is valid until the next
 * scan.
 */
export interface Scanner {
  readonly state: ScanState;
  /** @returns the number of messages, each with its verdict; or one of `BODY_FAULT` */
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
    isUncertain: false,
    verdicts: new Uint8Array(BATCH_MESSAGES_MAX),
    starts: new Int32Array(BATCH_MESSAGES_MAX),
    ends: new Int32Array(BATCH_MESSAGES_MAX),
    hasUuid: new Uint8Array(BATCH_MESSAGES_MAX),
    tooDeep: new Int32Array(BATCH_MESSAGES_MAX),
    odd: new Int32Array(BATCH_MESSAGES_MAX),
    repeated: new Int32Array(BATCH_MESSAGES_MAX),
  };
  return {
    state,
    scan: (sent, window) => {
      const body = withoutByteOrderMark(sent);
      state.bytes = withEnd(state.bytes, body);
      beginKeys(body.length);
      state.fromMs = window.fromMs;
      state.toMs = window.toMs;
      batch.body = state.bytes.subarray(0, body.length);
      batch.count = 0;
      // Decoding would replace invalid bytes by U+FFFD.
      return isUtf8(body) ? scanBody(state, body.length) : BODY_FAULT.notJson;
    },
  };
}

/** Zeros end every loop; none reads further ahead. */
const END_BYTES = 8;

/**
 * Copies a body in front of zeros, so that no read is out of bounds: handling those made some bodies four times as
 * slow.
 */
function withEnd(previous: Buffer, body: Buffer): Buffer {
  const length = body.length + END_BYTES;
  const bytes = previous.length < length ? Buffer.allocUnsafeSlow(length) : previous;
  body.copy(bytes);
  bytes.fill(0, body.length, length);
  return bytes;
}

const ENVELOPE_TABLE = new NameTable(['messages']);
/** Nesting depth of a field of the body. */
const VALUE_DEPTH = 1;
const ELEMENT_DEPTH = 2;

function endOfBody(bytes: Uint8Array, length: number): number {
  let end = length;
  while (end > 0 && isSpace(bytes[end - 1]!)) end--;
  return end;
}

/** An object with an array `messages`. The last of equal keys wins. */
function scanBody(state: ScanState, bodyLength: number): number {
  const { bytes } = state;
  const length = endOfBody(bytes, bodyLength);
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_BRACE)
    return endOfValue(bytes, i, 0) === length && length > 0 ? BODY_FAULT.notAnObject : BODY_FAULT.notJson;
  i = skipSpace(bytes, i + 1);
  let found: number = BODY_FAULT.noMessages;
  let isSeen = false;
  // Start of the last repeated `messages`.
  let again = 0;
  if (bytes[i] === CLOSE_BRACE) return i === length - 1 ? found : BODY_FAULT.notJson;
  for (;;) {
    if (bytes[i] !== QUOTE) return BODY_FAULT.notJson;
    const keyEnd = endOfString(bytes, i);
    if (keyEnd === FAIL) return BODY_FAULT.notJson;
    const name =
      keyEnd > FAIL
        ? ENVELOPE_TABLE.find(bytes, i + 1, keyEnd - 1)
        : ENVELOPE_TABLE.findEscaped(bytes, i + 1, -keyEnd - 1);
    i = skipColon(bytes, Math.abs(keyEnd));
    if (i === FAIL) return BODY_FAULT.notJson;
    if (name !== UNKNOWN && isSeen) again = i;
    if (name !== UNKNOWN && !isSeen && bytes[i] === OPEN_BRACKET) {
      i = scanMessages(state, i);
      found = countOf(state);
    } else i = endOfValue(bytes, i, VALUE_DEPTH);
    isSeen ||= name !== UNKNOWN;
    if (i === FAIL) return BODY_FAULT.notJson;
    i = skipSpace(bytes, i);
    if (bytes[i] === CLOSE_BRACE) {
      if (i !== length - 1) return BODY_FAULT.notJson;
      return again === 0 ? found : scanRepeatedMessages(state, again);
    }
    if (bytes[i] !== COMMA) return BODY_FAULT.notJson;
    i = skipSpace(bytes, i + 1);
  }
}

/** Its grammar has been checked. */
function scanRepeatedMessages(state: ScanState, at: number): number {
  if (state.bytes[at] !== OPEN_BRACKET) return BODY_FAULT.noMessages;
  scanMessages(state, at);
  return countOf(state);
}

function countOf({ batch: { count } }: ScanState): number {
  if (count === 0) return BODY_FAULT.tooFew;
  return count > BATCH_MESSAGES_MAX ? BODY_FAULT.tooMany : count;
}

/** Beyond the maximum of messages only the grammar is checked. */
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
    state.verdicts[message] = NO_OBJECT;
    state.ends[message] = endOfValue(state.bytes, at, ELEMENT_DEPTH);
    return state.ends[message]!;
  }
  const end = scanMessage(state, at);
  state.ends[message] = end;
  const isValid = !state.isUncertain && end - at <= MESSAGE_BYTES_MAX;
  state.verdicts[message] = isValid ? VALID : UNCERTAIN;
  return end;
}

/** By index. */
export interface Rejected {
  readonly message: number;
  readonly faults: readonly Fault[];
}

/** One entry of the answer: all messages of one id. */
export interface RejectionEntry {
  /** In its first spelling. */
  readonly messageId: string;
  readonly faults: readonly Fault[];
}

const NO_REJECTIONS: readonly [] = [];

/**
 * Validates a scanned batch: each message, then duplicate ids. Only uncertain messages are examined again (`explain`).
 * Sets `batch.accepted`. The result equals that of `validateBatch`.
 */
export function validateScanned(state: ScanState): {
  readonly rejected: readonly Rejected[];
  readonly entries: readonly RejectionEntry[];
} {
  const { batch, verdicts } = state;
  batch.accepted.fill(1, 0, batch.count);
  const faults: (readonly Fault[] | undefined)[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (verdicts[message] === VALID) continue;
    const found = explain(state, message);
    if (found.length > 0) faults[message] = found;
  }
  const onDuplicates = (...messages: readonly number[]) => {
    for (const message of messages) {
      const others = faults[message] ?? [];
      if (others[0] !== FAULT.duplicateId) faults[message] = [FAULT.duplicateId, ...others];
    }
  };
  findDuplicateUuids(state, onDuplicates);
  if (faults.length === 0) return { rejected: NO_REJECTIONS, entries: NO_REJECTIONS };
  const spellings = new IdSpellings(state);
  spellings.findDuplicates(onDuplicates);
  const rejected: Rejected[] = [];
  const entries = new Map<string, Entry>();
  for (const [message, found] of faults.entries()) {
    if (found === undefined) continue;
    batch.accepted[message] = 0;
    rejected.push({ message, faults: found });
    const { echo, name } = spellings.of(message);
    const entry = entries.get(name);
    if (entry === undefined) entries.set(name, new Entry(echo, found));
    else entry.add(found);
  }
  return { rejected, entries: [...entries.values()] };
}

class Entry implements RejectionEntry {
  readonly messageId: string;
  faults: readonly Fault[];
  #ordinals: Set<number> | null = null;

  constructor(messageId: string, faults: readonly Fault[]) {
    this.messageId = messageId;
    this.faults = faults;
  }

  /** Adds faults of another message of the id, each field and code once. */
  add(faults: readonly Fault[]): void {
    const ordinals = this.#ordinals ?? new Set(this.faults.map(({ ordinal }) => ordinal));
    this.#ordinals = ordinals;
    const more = faults.filter(({ ordinal }) => !ordinals.has(ordinal));
    if (more.length === 0) return;
    for (const { ordinal } of more) ordinals.add(ordinal);
    this.faults = [...this.faults, ...more];
  }
}

interface IdSpelling {
  /** Echoed to the client. */
  readonly echo: string;
  /** Messages of the same name share one entry. */
  readonly name: string;
  readonly isComparable: boolean;
}

const NO_ID: IdSpelling = { echo: '', name: '', isComparable: false };

/** Contract, "messageId", "No object", "Several without an id" and "Twins". */
class IdSpellings {
  readonly #state: ScanState;
  readonly #known: (IdSpelling | undefined)[] = [];

  constructor(state: ScanState) {
    this.#state = state;
  }

  of(message: number): IdSpelling {
    this.#known[message] ??= this.#read(message);
    return this.#known[message];
  }

  #read(message: number): IdSpelling {
    const { bytes, batch, verdicts } = this.#state;
    const slot = (message << ROW_SHIFT) + FIELD.messageId;
    const start = batch.starts[slot]!;
    if (verdicts[message] === NO_OBJECT || start === 0) return NO_ID;
    const isText = bytes[start - 1] === QUOTE;
    if (!isText && batch.ends[slot] === start) return NO_ID;
    const echo = textOf(batch, message, FIELD.messageId);
    return { echo, name: echo.toLowerCase(), isComparable: isText && !isBlank(echo) };
  }

  /** Finds duplicate ids that are not UUIDs. */
  findDuplicates(onDuplicates: (message: number, first: number) => void): void {
    const { batch, hasUuid, verdicts } = this.#state;
    const firsts = new Map<string, number>();
    for (let message = 0; message < batch.count; message++) {
      if (verdicts[message] === VALID || hasUuid[message] === 1) continue;
      const { name, isComparable } = this.of(message);
      if (!isComparable) continue;
      const first = firsts.get(name);
      if (first === undefined) firsts.set(name, message);
      else onDuplicates(message, first);
    }
  }
}

/** A power of two, more than twice the messages of a batch. */
const ID_SLOTS = 256;
const idSlots = new Int16Array(ID_SLOTS);

function isSameId(ids: Uint8Array, message: number, other: number): boolean {
  const start = message * UUID_BYTES;
  const otherStart = other * UUID_BYTES;
  for (let i = 0; i < UUID_BYTES; i++) if (ids[start + i] !== ids[otherStart + i]) return false;
  return true;
}

/**
 * Finds duplicate UUIDs by their bytes, so case does not matter.
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
    // Ids made from a counter differ at one of the ends.
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
