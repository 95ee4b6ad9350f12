import { isUtf8 } from 'node:buffer';
import { BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX, type TimeWindow } from '@playline/contracts';
import { createScannedBatch, type ScannedBatch } from '@playline/events';
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
  SPACE,
  skipColon,
  skipSpace,
} from './json.ts';
import { scanMessage } from './message.ts';
import { hasTwins } from './message-id.ts';
import { NameTable, UNKNOWN } from './names.ts';
import type { ScanState } from './state.ts';

/** The scan does not say: the slow path judges the body. */
export const UNDECIDED = -1;

/**
 * One pass over the bytes of a body. It may leave any body undecided; it never accepts what the contract rejects and
 * never finds other fields than JSON.parse does. Synchronous and not reentrant: `batch` is good until the next scan.
 */
export interface Scanner {
  readonly batch: ScannedBatch;
  /** @returns the number of messages, all of them acceptable and described by `batch`; or `UNDECIDED`. */
  scan(body: Buffer, window: TimeWindow): number;
}

export function createScanner(): Scanner {
  const batch = createScannedBatch();
  const state: ScanState = { bytes: batch.body, batch, message: 0, fromMs: 0, toMs: 0 };
  return {
    batch,
    scan: (body, window) => {
      state.bytes = body;
      state.fromMs = window.fromMs;
      state.toMs = window.toMs;
      batch.body = body;
      batch.count = 0;
      if (!isUtf8(body) || !scanBody(state)) return UNDECIDED;
      return batch.count === 0 || hasTwins(batch) ? UNDECIDED : batch.count;
    },
  };
}

const ENVELOPE_TABLE = new NameTable(['messages']);
/** A field of the body. */
const VALUE_DEPTH = 1;

function lengthWithoutTrailingSpace(bytes: Uint8Array): number {
  let length = bytes.length;
  while (length > 0 && isSpace(bytes[length - 1]!)) length--;
  return length;
}

/** Reads the whole body: an object with one array `messages`, and nothing behind it. */
function scanBody(state: ScanState): boolean {
  const { bytes } = state;
  const length = lengthWithoutTrailingSpace(bytes);
  let i = skipSpace(bytes, 0);
  // With a brace as the last byte no loop below runs far beyond the end.
  if (bytes[i] !== OPEN_BRACE || bytes[length - 1] !== CLOSE_BRACE) return false;
  i = skipSpace(bytes, i + 1);
  let isSeen = false;
  for (;;) {
    if (bytes[i] !== QUOTE) return false;
    const keyEnd = endOfString(bytes, i);
    if (keyEnd <= FAIL) return false;
    const name = ENVELOPE_TABLE.find(bytes, i + 1, keyEnd - 1);
    i = skipColon(bytes, keyEnd);
    if (i === FAIL) return false;
    if (name === UNKNOWN) i = endOfValue(bytes, i, VALUE_DEPTH);
    else {
      if (isSeen) return false;
      isSeen = true;
      i = scanMessages(state, i);
    }
    if (i === FAIL) return false;
    i = skipSpace(bytes, i);
    if (bytes[i] === CLOSE_BRACE) return i === length - 1;
    if (bytes[i] !== COMMA) return false;
    i = skipSpace(bytes, i + 1);
  }
}

/** Reads the array of messages from its bracket. */
function scanMessages(state: ScanState, at: number): number {
  const { bytes, batch } = state;
  if (bytes[at] !== OPEN_BRACKET) return FAIL;
  let i = skipSpace(bytes, at + 1);
  for (;;) {
    if (bytes[i] !== OPEN_BRACE || batch.count === BATCH_MESSAGES_MAX) return FAIL;
    state.message = batch.count;
    const end = scanMessage(state, i);
    if (end === FAIL || end - i > MESSAGE_BYTES_MAX) return FAIL;
    batch.count++;
    i = bytes[end]! <= SPACE ? skipSpace(bytes, end) : end;
    if (bytes[i] === CLOSE_BRACKET) return i + 1;
    if (bytes[i] !== COMMA) return FAIL;
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
  }
}
