import { HEX_VALUES, NOT_HEX } from './json.ts';
import { UUID_BYTES } from './ranges.ts';
import type { ScanState } from './state.ts';

const UUID_TEXT_BYTES = 36;
/** Places of the sixteen pairs of digits in the text of a UUID. */
const UUID_PAIRS = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34);
const HYPHEN = 0x2d;

/** Reads the UUID text from `start` to before `end` as the id of the message being scanned; false when it is none. */
export function readMessageId(
  { bytes, batch, message }: Pick<ScanState, 'bytes' | 'batch' | 'message'>,
  start: number,
  end: number,
): boolean {
  if (end - start !== UUID_TEXT_BYTES) return false;
  if (bytes[start + 8] !== HYPHEN || bytes[start + 13] !== HYPHEN) return false;
  if (bytes[start + 18] !== HYPHEN || bytes[start + 23] !== HYPHEN) return false;
  const ids = batch.messageIds;
  const to = message * UUID_BYTES;
  let all = 0;
  for (let pair = 0; pair < UUID_BYTES; pair++) {
    const at = start + UUID_PAIRS[pair]!;
    const high = HEX_VALUES[bytes[at]!]!;
    const low = HEX_VALUES[bytes[at + 1]!]!;
    all |= high | low;
    ids[to + pair] = (high << 4) | low;
  }
  return (all & NOT_HEX) === 0;
}

/** Places of the hash table below: more than twice the messages of a batch, and a power of two. */
const PLACES = 256;
const places = new Int16Array(PLACES);

function isSameId(ids: Uint8Array, message: number, other: number): boolean {
  const start = message * UUID_BYTES;
  const otherStart = other * UUID_BYTES;
  for (let i = 0; i < UUID_BYTES; i++) if (ids[start + i] !== ids[otherStart + i]) return false;
  return true;
}

/**
 * Finds messages that carry one UUID; case is gone once the ids are bytes.
 * @param onTwins told of both, once for each message after the first
 */
export function findTwins(
  { batch, hasUuid }: Pick<ScanState, 'batch' | 'hasUuid'>,
  onTwins: (message: number, first: number) => void,
): void {
  if (batch.count < 2) return;
  const ids = batch.messageIds;
  places.fill(-1);
  for (let message = 0; message < batch.count; message++) {
    if (hasUuid[message] === 0) continue;
    const id = message * UUID_BYTES;
    // First, middle and last bytes: ids made from a counter differ at one of the ends.
    let place = (ids[id]! ^ (ids[id + 7]! * 5) ^ (ids[id + 15]! * 3)) & (PLACES - 1);
    let other = places[place]!;
    while (other >= 0 && !isSameId(ids, message, other)) {
      place = (place + 1) & (PLACES - 1);
      other = places[place]!;
    }
    if (other >= 0) onTwins(message, other);
    else places[place] = message;
  }
}
