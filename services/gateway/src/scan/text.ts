import {
  BACKSLASH,
  CHAR_T,
  CHAR_U,
  COLON,
  DIGIT_0,
  HEX_VALUES,
  MINUS as HYPHEN,
  LOWER_CASE,
  NOT_HEX,
  PLUS,
  POINT,
  SPACE,
} from './json.ts';
import { type ScanState, UUID_BYTES } from './ranges.ts';

/** Functions that read strings of a message from bytes. */

/** Lead bytes of non-ASCII white space: U+00A0, U+1680, U+2000 to U+3000, U+FEFF. */
const SPACE_LEADS = new Uint8Array(256);
for (const lead of [0xc2, 0xe1, 0xe2, 0xe3, 0xef]) SPACE_LEADS[lead] = 1;

/** Kana and CJK punctuation share the lead byte of U+3000. */
const KANA_LEAD = 0xe3;
const IDEOGRAPHIC_SPACE_SECOND = 0x80;

/** Returns true only if the character is neither white space nor an escape. */
export function isVisibleAt(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at]!;
  if (byte < 0x80) return byte > SPACE && byte !== BACKSLASH;
  return SPACE_LEADS[byte] === 0 || (byte === KANA_LEAD && bytes[at + 1] !== IDEOGRAPHIC_SPACE_SECOND);
}

/** Returns true only if the last character before `end` is not white space. */
export function isVisibleBefore(bytes: Uint8Array, end: number): boolean {
  let at = end - 1;
  // Skips continuation bytes.
  while ((bytes[at]! & 0xc0) === 0x80) at--;
  return isVisibleAt(bytes, at);
}

const UUID_TEXT_BYTES = 36;
/** Offsets of the digit pairs in a UUID. */
const UUID_PAIRS = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34);

/** Stores a UUID as the id of the current message. Returns false if the string is not a UUID. */
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

const CHAR_Z = 0x7a;

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/** Days from 1 January of year 1 to the epoch. */
const DAYS_TO_EPOCH = 719_162;

/** Lengths of `2026-01-31T12:00:00Z` and of a timestamp with nine fractional digits and an offset. */
const LENGTH_MIN = 20;
const LENGTH_MAX = 35;
const FRACTION_DIGITS_MAX = 9;
const SECONDS_END = 19;

/** Returns -1 if the bytes are not digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - 0x30;
  const ones = bytes[at + 1]! - 0x30;
  return tens >>> 0 > 9 || ones >>> 0 > 9 ? -1 : tens * 10 + ones;
}

/** Returns NaN if the date does not exist. */
function epochDay(bytes: Uint8Array, at: number): number {
  const century = twoDigits(bytes, at);
  const yearOfCentury = twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  if (century < 0 || yearOfCentury < 0 || month < 1 || month > 12 || day < 1) return Number.NaN;
  if (bytes[at + 4] !== HYPHEN || bytes[at + 7] !== HYPHEN) return Number.NaN;
  const year = century * 100 + yearOfCentury;
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  if (day > MONTH_DAYS[month - 1]! + (isLeap && month === 2 ? 1 : 0)) return Number.NaN;
  const before = year - 1;
  const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400);
  const leapDay = isLeap && month > 2 ? 1 : 0;
  return before * 365 + leapDays + DAYS_BEFORE_MONTH[month - 1]! + leapDay + day - 1 - DAYS_TO_EPOCH;
}

/** Returns the minutes of an offset such as `Z` or `+hh:mm` that ends at `end`, or NaN. */
function offsetMinutes(bytes: Uint8Array, at: number, end: number): number {
  const sign = bytes[at]!;
  if ((sign | LOWER_CASE) === CHAR_Z) return at + 1 === end ? 0 : Number.NaN;
  if ((sign !== PLUS && sign !== HYPHEN) || at + 6 !== end || bytes[at + 3] !== COLON) return Number.NaN;
  const hours = twoDigits(bytes, at + 1);
  const minutes = twoDigits(bytes, at + 4);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return Number.NaN;
  return sign === PLUS ? hours * 60 + minutes : -(hours * 60 + minutes);
}

/** Implements `parseTimestamp` on bytes: returns epoch milliseconds, rounded down, or NaN. */
export function parseTimestampBytes(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length < LENGTH_MIN || length > LENGTH_MAX) return Number.NaN;
  const hour = twoDigits(bytes, start + 11);
  const minute = twoDigits(bytes, start + 14);
  const second = twoDigits(bytes, start + 17);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return Number.NaN;
  if ((bytes[start + 10]! | LOWER_CASE) !== CHAR_T) return Number.NaN;
  if (bytes[start + 13] !== COLON || bytes[start + 16] !== COLON) return Number.NaN;
  let at = start + SECONDS_END;
  let milliseconds = 0;
  if (bytes[at] === POINT) {
    const first = ++at;
    let unit = 100;
    for (let digit = bytes[at]! - 0x30; at < end && digit >>> 0 <= 9; digit = bytes[++at]! - 0x30) {
      milliseconds += digit * unit;
      unit = unit === 1 ? 0 : unit / 10;
    }
    if (at === first || at - first > FRACTION_DIGITS_MAX) return Number.NaN;
  }
  const day = epochDay(bytes, start);
  return (((day * 24 + hour) * 60 + minute - offsetMinutes(bytes, at, end)) * 60 + second) * 1000 + milliseconds;
}

export const UNKNOWN = -1;

/** No field name in the contract is longer. */
const UNESCAPED_MAX = 32;
const unescaped = new Uint8Array(UNESCAPED_MAX);

/**
 * Decodes a key with escapes into `unescaped`.
 * @returns the number of characters, or `UNKNOWN` if the key cannot be a field name
 */
function unescapeName(bytes: Uint8Array, start: number, end: number): number {
  let length = 0;
  for (let i = start; i < end; length++) {
    if (length === UNESCAPED_MAX) return UNKNOWN;
    if (bytes[i] !== BACKSLASH) {
      unescaped[length] = bytes[i++]!;
      continue;
    }
    if (bytes[i + 1] !== CHAR_U || bytes[i + 2] !== DIGIT_0 || bytes[i + 3] !== DIGIT_0) return UNKNOWN;
    unescaped[length] = (HEX_VALUES[bytes[i + 4]!]! << 4) | HEX_VALUES[bytes[i + 5]!]!;
    // A non-ASCII character needs more than one byte.
    if (unescaped[length]! > 0x7f) return UNKNOWN;
    i += 6;
  }
  return length;
}

/** Enough slots to find a perfect hash quickly. */
const SLOTS = 64;

/** Looks up names by their bytes: a perfect hash of the length and three bytes, then an exact comparison. */
export class NameTable {
  readonly #names: readonly Uint8Array[];
  /** Index of the name plus one; 0 if empty. */
  readonly #slots = new Uint8Array(SLOTS);
  #first = 0;
  #middle = 0;

  /** @throws Error if no perfect hash exists; tables are created at startup */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => Uint8Array.from(Buffer.from(name)));
    for (this.#first = 1; this.#first < SLOTS; this.#first++) {
      for (this.#middle = 1; this.#middle < SLOTS; this.#middle++) if (this.#fillSlots()) return;
    }
    throw new Error(`no collision-free hash for ${names.join(', ')}`);
  }

  #fillSlots(): boolean {
    this.#slots.fill(0);
    for (const [index, name] of this.#names.entries()) {
      const slot = this.#slotOf(name, 0, name.length);
      if (this.#slots[slot] !== 0) return false;
      this.#slots[slot] = index + 1;
    }
    return true;
  }

  #slotOf(bytes: Uint8Array, start: number, length: number): number {
    const hash =
      bytes[start]! * this.#first +
      bytes[start + (length >> 1)]! * this.#middle +
      bytes[start + length - 1]! +
      length * 7;
    return hash & (SLOTS - 1);
  }

  /** Finds a key with escapes. */
  findEscaped(bytes: Uint8Array, start: number, end: number): number {
    const length = unescapeName(bytes, start, end);
    return length === UNKNOWN ? UNKNOWN : this.find(unescaped, 0, length);
  }

  /** @returns the index of the name, or `UNKNOWN` */
  find(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (length <= 0) return UNKNOWN;
    const index = this.#slots[this.#slotOf(bytes, start, length)]! - 1;
    if (index === UNKNOWN) return UNKNOWN;
    const name = this.#names[index]!;
    if (name.length !== length) return UNKNOWN;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== name[i]) return UNKNOWN;
    return index;
  }
}
