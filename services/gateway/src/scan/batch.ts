import { isUtf8 } from 'node:buffer';
import { BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX, type TimeWindow, withoutByteOrderMark } from '@playline/contracts';
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
import { createScannedBatch, DOUBTFUL, NO_OBJECT, type ScanState, SOUND } from './ranges.ts';
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
    isDoubtful: false,
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
      return again === 0 ? found : lookAgain(state, again);
    }
    if (bytes[i] !== COMMA) return BODY_FAULT.notJson;
    i = skipSpace(bytes, i + 1);
  }
}

/** Reads the messages of a further value of `messages`, whose grammar has been checked already. */
function lookAgain(state: ScanState, at: number): number {
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
  const isSound = !state.isDoubtful && end - at <= MESSAGE_BYTES_MAX;
  state.verdicts[message] = isSound ? SOUND : DOUBTFUL;
  return end;
}
