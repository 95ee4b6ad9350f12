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

/** What is wrong with a body as a whole. */
export const BODY_FAULT = {
  /** Not UTF-8, or not JSON. */
  notJson: -1,
  notAnObject: -2,
  noMessages: -3,
  tooFew: -4,
  tooMany: -5,
} as const;

/**
 * Scans a body in one pass, which checks all of its grammar and finds the fields of every message. It never calls a
 * message sound that the contract rejects, and finds the same fields as JSON.parse. Synchronous and not reentrant: the
 * state is valid until the next scan, and refers to a copy of the body.
 */
export interface Scanner {
  readonly state: ScanState;
  /** @returns the number of messages, each with its own verdict; or one of `BODY_FAULT` */
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
      // RFC 8259: JSON is UTF-8. Decoding would replace invalid bytes by U+FFFD and so store text that nobody sent.
      return isUtf8(body) ? scanBody(state, body.length) : BODY_FAULT.notJson;
    },
  };
}

/** Zero bytes after a body, which no rule accepts: no loop runs past them, and none looks further ahead. */
const END_BYTES = 8;

/**
 * Copies a body to a place with zeros after it, so that no read is outside of the buffer. The compiler would have to
 * provide for such reads in every loop, which made some bodies four times as expensive as others of their size.
 */
function withEnd(place: Buffer, body: Buffer): Buffer {
  const length = body.length + END_BYTES;
  const roomy = place.length < length ? Buffer.allocUnsafeSlow(length) : place;
  body.copy(roomy);
  roomy.fill(0, body.length, length);
  return roomy;
}

const ENVELOPE_TABLE = new NameTable(['messages']);
/** Nesting depth of a field of the body. */
const VALUE_DEPTH = 1;
const ELEMENT_DEPTH = 2;

/** The place after the last byte that is not white space. */
function endOfBody(bytes: Uint8Array, length: number): number {
  let end = length;
  while (end > 0 && isSpace(bytes[end - 1]!)) end--;
  return end;
}

/** Reads the whole body: an object with an array `messages`, and nothing after it. The last of equal keys wins. */
function scanBody(state: ScanState, bodyLength: number): number {
  const { bytes } = state;
  const length = endOfBody(bytes, bodyLength);
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_BRACE)
    return endOfValue(bytes, i, 0) === length && length > 0 ? BODY_FAULT.notAnObject : BODY_FAULT.notJson;
  i = skipSpace(bytes, i + 1);
  let found: number = BODY_FAULT.noMessages;
  let isSeen = false;
  // Start of the last further value of `messages`. Only the last counts, however many there are.
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

/** Reads the messages of a further value of `messages`, whose grammar has been checked already. */
function scanRepeatedMessages(state: ScanState, at: number): number {
  if (state.bytes[at] !== OPEN_BRACKET) return BODY_FAULT.noMessages;
  scanMessages(state, at);
  return countOf(state);
}

function countOf({ batch: { count } }: ScanState): number {
  if (count === 0) return BODY_FAULT.tooFew;
  return count > BATCH_MESSAGES_MAX ? BODY_FAULT.tooMany : count;
}

/** Reads the array of messages from its bracket. Of messages beyond the limit it only checks the grammar. */
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

/** Reads one element of the array and stores its verdict. */
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
  const isSound = !state.isUncertain && end - at <= MESSAGE_BYTES_MAX;
  state.verdicts[message] = isSound ? VALID : UNCERTAIN;
  return end;
}

/** A rejected message, by its index. */
export interface Rejected {
  readonly message: number;
  readonly faults: readonly Fault[];
}

/** One entry of the answer's `rejections`: all messages of one id. */
export interface RejectionEntry {
  /** The id in the client's first spelling. */
  readonly messageId: string;
  readonly faults: readonly Fault[];
}

interface ScanResult {
  readonly rejected: readonly Rejected[];
  readonly entries: readonly RejectionEntry[];
}

const ALL_ACCEPTED: ScanResult = { rejected: [], entries: [] };

/**
 * Judges a scanned batch: each message by itself, then twins, which are messages with the same id. Only doubtful
 * messages are examined again (`explain`). Marks the messages to encode in `batch.accepted`. The result equals that of
 * `judgeBatch` of the contract.
 */
export function validateScanned(state: ScanState): ScanResult {
  const { batch, verdicts } = state;
  batch.accepted.fill(1, 0, batch.count);
  const faults: (readonly Fault[] | undefined)[] = [];
  for (let message = 0; message < batch.count; message++) {
    if (verdicts[message] === VALID) continue;
    const found = explain(state, message);
    if (found.length > 0) faults[message] = found;
  }
  const spellings = new IdSpellings(state);
  const rejectTwin = (message: number) => {
    const before = faults[message] ?? [];
    if (before[0] !== FAULT.duplicateId) faults[message] = [FAULT.duplicateId, ...before];
  };
  const onTwins = (message: number, first: number) => {
    rejectTwin(first);
    rejectTwin(message);
  };
  findDuplicateIds(state, onTwins);
  if (faults.length === 0) return ALL_ACCEPTED;
  spellings.findTwins(onTwins);
  return toJudgement(state, faults, spellings);
}

function toJudgement(
  { batch }: ScanState,
  faults: readonly (readonly Fault[] | undefined)[],
  spellings: IdSpellings,
): ScanResult {
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
  #places: Set<number> | null = null;

  constructor(messageId: string, faults: readonly Fault[]) {
    this.messageId = messageId;
    this.faults = faults;
  }

  /** Adds the faults of another message of the same id; each field and code only once. */
  add(faults: readonly Fault[]): void {
    this.#places ??= new Set(this.faults.map(({ ordinal: place }) => place));
    const places = this.#places;
    const more = faults.filter(({ ordinal: place }) => !places.has(place));
    if (more.length === 0) return;
    for (const { ordinal: place } of more) places.add(place);
    this.faults = [...this.faults, ...more];
  }
}

/** How the answer names a message, and how messages with the same id are recognised. */
interface IdSpelling {
  /** The name that is echoed to the client. */
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

  /** Finds messages that share an id which is not a UUID. UUIDs have been compared already. */
  findTwins(onTwins: (message: number, first: number) => void): void {
    const { batch, hasUuid, verdicts } = this.#state;
    const firsts = new Map<string, number>();
    for (let message = 0; message < batch.count; message++) {
      if (verdicts[message] === VALID || hasUuid[message] === 1) continue;
      const { name, isComparable } = this.of(message);
      if (!isComparable) continue;
      const first = firsts.get(name);
      if (first === undefined) firsts.set(name, message);
      else onTwins(message, first);
    }
  }
}

/** Slots of the hash table below: more than twice the messages of a batch, and a power of two. */
const ID_SLOTS = 256;
const idSlots = new Int16Array(ID_SLOTS);

function isSameId(ids: Uint8Array, message: number, other: number): boolean {
  const start = message * UUID_BYTES;
  const otherStart = other * UUID_BYTES;
  for (let i = 0; i < UUID_BYTES; i++) if (ids[start + i] !== ids[otherStart + i]) return false;
  return true;
}

/**
 * Finds messages with the same UUID. The ids are bytes, so upper and lower case do not matter.
 * @param onTwins called with both messages, once for each after the first
 */
function findDuplicateIds(
  { batch, hasUuid }: Pick<ScanState, 'batch' | 'hasUuid'>,
  onTwins: (message: number, first: number) => void,
): void {
  if (batch.count < 2) return;
  const ids = batch.messageIds;
  idSlots.fill(-1);
  for (let message = 0; message < batch.count; message++) {
    if (hasUuid[message] === 0) continue;
    const id = message * UUID_BYTES;
    // First, middle and last bytes, because ids made from a counter differ at one of the ends.
    let place = (ids[id]! ^ (ids[id + 7]! * 5) ^ (ids[id + 15]! * 3)) & (ID_SLOTS - 1);
    let other = idSlots[place]!;
    while (other >= 0 && !isSameId(ids, message, other)) {
      place = (place + 1) & (ID_SLOTS - 1);
      other = idSlots[place]!;
    }
    if (other >= 0) onTwins(message, other);
    else idSlots[place] = message;
  }
}
