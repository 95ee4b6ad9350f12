import type { RowBuffer } from './row-buffer.ts';

const KEY_BYTES = 16;
/** Environment, type and event name stand first. */
const LEADING_STRINGS = 3;
/** Two times and the message id, which stand between them and the keys. */
const BEFORE_KEYS_BYTES = 8 + 8 + 16;
/** Owner, anonymous, user, from and to. */
const KEYS = 5;

/**
 * Takes the anonymous id and its key out of the row of `events` that was added last: the row is somebody else's, who used
 * the device of one who was erased. Bytes in front of them are left where they are, those behind move up.
 */
export function blankAnonymous(out: RowBuffer): void {
  const end = out.length;
  let at = out.rowEnds.at(-2) ?? 0;
  for (let skipped = 0; skipped < LEADING_STRINGS; skipped++) at = behindString(out.bytes, at);
  const keysAt = at + BEFORE_KEYS_BYTES;
  out.bytes.fill(0, keysAt + KEY_BYTES, keysAt + 2 * KEY_BYTES);
  const idAt = keysAt + KEYS * KEY_BYTES;
  const behindId = behindString(out.bytes, idAt);
  out.bytes[idAt] = 0;
  out.bytes.copyWithin(idAt + 1, behindId, end);
  out.truncate(out.rows - 1);
  out.endRow(end - (behindId - idAt - 1));
}

/** Where a string of RowBinary ends: its length in seven bits a byte, the least first, then its bytes. */
function behindString(bytes: Buffer, start: number): number {
  let length = 0;
  let factor = 1;
  for (let at = start; ; at++) {
    const byte = bytes[at]!;
    length += (byte & 127) * factor;
    if (byte < 128) return at + 1 + length;
    factor *= 128;
  }
}
