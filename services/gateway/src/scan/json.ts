/**
 * Checks the JSON grammar (RFC 8259) of bytes without creating objects. The functions take a start offset and return
 * the offset after the value, or `FAIL`. Zeros must follow the bytes.
 */

import { FREE_FORM_DEPTH_MAX } from '@playline/contracts';

/** Never a valid offset, because no value ends at 0. */
export const FAIL = 0;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const SPACE = 0x20;
export const DIGIT_0 = 0x30;
export const DIGIT_9 = 0x39;
export const MINUS = 0x2d;
export const PLUS = 0x2b;
export const POINT = 0x2e;
const CHAR_UPPER_E = 0x45;
export const CHAR_E = 0x65;
export const CHAR_F = 0x66;
const CHAR_L = 0x6c;
export const CHAR_N = 0x6e;
export const CHAR_T = 0x74;
export const CHAR_U = 0x75;
/** The bit that distinguishes lower case from upper case in ASCII. */
export const LOWER_CASE = 0x20;

/**
 * Deeper values are read in a loop, so that they cannot overflow the stack. The limit allows every valid free-form
 * object.
 */
const DEPTH_MAX = FREE_FORM_DEPTH_MAX + 2;

/** An integer of this length may exceed 64 bits. */
const LONG_NUMBER_BYTES = 19;

/** Number of surrogate escapes, long integers and exponents read so far, which ClickHouse may misread. */
export const unsafeReads = { count: 0 };

/** Number of objects read so far that may have duplicate keys. */
export const duplicateKeyReads = { count: 0 };

/** Size of the hash table of keys. Each nesting depth has its own table. */
const KEY_SLOTS = 512;
/** Maximum probes per key. */
const KEY_PROBES = 8;
/** `keyBase` plus the offset of a key. Entries up to the brace of the current object belong to earlier objects. */
const keys = new Int32Array((DEPTH_MAX + 1) * KEY_SLOTS);
/** Offset of the current object's brace at each depth. */
const braces = new Int32Array(DEPTH_MAX + 1);
const KEY_BASE_MAX = 2 ** 30;
let keyBase = 0;
let bodyLength = 0;

/** Discards the keys of the previous body. Must be called before each body with its length. */
export function resetKeys(length: number): void {
  keyBase += bodyLength;
  bodyLength = length;
  if (keyBase < KEY_BASE_MAX) return;
  keys.fill(0);
  keyBase = 0;
}

/** Records a key without escapes. Returns false if the key may be a duplicate. */
function isNewKey(bytes: Uint8Array, start: number, end: number, depth: number): boolean {
  const length = end - start;
  const hash = length + bytes[start]! * 31 + bytes[start + (length >> 1)]! * 131 + bytes[end - 1]! * 7;
  for (let probe = 0; probe < KEY_PROBES; probe++) {
    const slot = depth * KEY_SLOTS + ((hash + probe) & (KEY_SLOTS - 1));
    const other = keys[slot]! - keyBase;
    if (other <= braces[depth]!) {
      keys[slot] = keyBase + start;
      return true;
    }
    let matching = 0;
    while (matching <= length && bytes[other + matching] === bytes[start + matching]) matching++;
    if (matching > length) return false;
  }
  return false;
}

/** 1 for bytes in a string that need a check: control characters, quotes, backslashes. */
const STOPS = new Uint8Array(256).fill(1, 0, SPACE);
STOPS[QUOTE] = 1;
STOPS[BACKSLASH] = 1;

/** The value of each hexadecimal digit; `NOT_HEX` for other bytes. */
export const HEX_VALUES = new Uint8Array(256).fill(0x80);
export const NOT_HEX = 0x80;
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX_VALUES[digit.charCodeAt(0)] = value;
  HEX_VALUES[digit.toUpperCase().charCodeAt(0)] = value;
}

/** Bytes that may follow a backslash, except `u`. */
const SIMPLE_ESCAPES = new Uint8Array(256);
for (const character of '"\\/bfnrt') SIMPLE_ESCAPES[character.charCodeAt(0)] = 1;

export function isSpace(byte: number): boolean {
  return byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isSpace(bytes[i]!)) i++;
  return i;
}

/**
 * Reads a string from its opening quote.
 * @returns the offset after the closing quote, negated if the string has escapes
 */
export function endOfString(bytes: Uint8Array, at: number): number {
  let i = at + 1;
  while (STOPS[bytes[i]!] === 0) i++;
  if (bytes[i] === QUOTE) return i + 1;
  return endOfEscapedString(bytes, i);
}

function endOfEscapedString(bytes: Uint8Array, at: number): number {
  let i = at;
  for (;;) {
    while (STOPS[bytes[i]!] === 0) i++;
    if (bytes[i] === QUOTE) return -(i + 1);
    if (bytes[i] !== BACKSLASH) return FAIL;
    if (SIMPLE_ESCAPES[bytes[i + 1]!] === 1) i += 2;
    else if (bytes[i + 1] === CHAR_U && isHex4(bytes, i + 2)) {
      if (HEX_VALUES[bytes[i + 2]!] === 0xd && HEX_VALUES[bytes[i + 3]!]! >= 8) unsafeReads.count++;
      i += 6;
    } else return FAIL;
  }
}

function isHex4(bytes: Uint8Array, at: number): boolean {
  const all =
    HEX_VALUES[bytes[at]!]! | HEX_VALUES[bytes[at + 1]!]! | HEX_VALUES[bytes[at + 2]!]! | HEX_VALUES[bytes[at + 3]!]!;
  return (all & NOT_HEX) === 0;
}

/** Returns true if there is an escape from `\uD8xx` to `\uDFxx`, alone or in a pair. */
export function hasSurrogateEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if (bytes[i] !== BACKSLASH) continue;
    i++;
    if (bytes[i] !== CHAR_U) continue;
    if (HEX_VALUES[bytes[i + 1]!] === 0xd && HEX_VALUES[bytes[i + 2]!]! >= 8) return true;
    i += 4;
  }
  return false;
}

const isDigit = (byte: number): boolean => byte >= DIGIT_0 && byte <= DIGIT_9;

function skipDigits(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isDigit(bytes[i]!)) i++;
  return i;
}

function endOfNumber(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === MINUS ? at + 1 : at;
  const first = bytes[i]!;
  if (!isDigit(first)) return FAIL;
  i++;
  if (first !== DIGIT_0) while (isDigit(bytes[i]!)) i++;
  if (i - at >= LONG_NUMBER_BYTES) unsafeReads.count++;
  const next = bytes[i]!;
  // Most numbers end here: bytes that may follow are below `E` and are not a decimal point.
  return next < CHAR_UPPER_E && next !== POINT ? i : endOfFraction(bytes, i);
}

/** Reads an optional fraction and exponent. */
function endOfFraction(bytes: Uint8Array, at: number): number {
  let i = at;
  if (bytes[i] === POINT) {
    if (!isDigit(bytes[i + 1]!)) return FAIL;
    i = skipDigits(bytes, i + 1);
  }
  if ((bytes[i]! | LOWER_CASE) !== CHAR_E) return i;
  unsafeReads.count++;
  i++;
  if (bytes[i] === PLUS || bytes[i] === MINUS) i++;
  return isDigit(bytes[i]!) ? skipDigits(bytes, i) : FAIL;
}

function endOfNull(bytes: Uint8Array, at: number): number {
  const isNull =
    bytes[at] === CHAR_N && bytes[at + 1] === CHAR_U && bytes[at + 2] === CHAR_L && bytes[at + 3] === CHAR_L;
  return isNull ? at + 4 : FAIL;
}

function endOfBoolean(bytes: Uint8Array, at: number): number {
  if (bytes[at] === CHAR_T) {
    return bytes[at + 1] === 0x72 && bytes[at + 2] === CHAR_U && bytes[at + 3] === CHAR_E ? at + 4 : FAIL;
  }
  const isFalse =
    bytes[at] === CHAR_F &&
    bytes[at + 1] === 0x61 &&
    bytes[at + 2] === CHAR_L &&
    bytes[at + 3] === 0x73 &&
    bytes[at + 4] === CHAR_E;
  return isFalse ? at + 5 : FAIL;
}

/** Skips a colon and the white space around it. */
export function skipColon(bytes: Uint8Array, at: number): number {
  const colon = bytes[at] === COLON ? at : skipSpace(bytes, at);
  if (bytes[colon] !== COLON) return FAIL;
  return bytes[colon + 1]! > SPACE ? colon + 1 : skipSpace(bytes, colon + 1);
}

/** @param depth nesting depth of the value */
export function endOfValue(bytes: Uint8Array, at: number, depth: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return Math.abs(endOfString(bytes, at));
    case OPEN_BRACE:
      return endOfObject(bytes, at, depth);
    case OPEN_BRACKET:
      return endOfArray(bytes, at, depth);
    case CHAR_N:
      return endOfNull(bytes, at);
    case CHAR_T:
    case CHAR_F:
      return endOfBoolean(bytes, at);
    default:
      return endOfNumber(bytes, at);
  }
}

function endOfObject(bytes: Uint8Array, at: number, depth: number): number {
  if (depth > DEPTH_MAX) return endOfDeepValue(bytes, at);
  let i = bytes[at + 1]! > SPACE ? at + 1 : skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACE) return i + 1;
  braces[depth] = at;
  let mayHaveDuplicates = false;
  for (;;) {
    if (bytes[i] !== QUOTE) return FAIL;
    const keyEnd = endOfString(bytes, i);
    if (keyEnd === FAIL) return FAIL;
    if (!mayHaveDuplicates && (keyEnd < FAIL || !isNewKey(bytes, i + 1, keyEnd - 1, depth))) {
      mayHaveDuplicates = true;
      duplicateKeyReads.count++;
    }
    i = skipColon(bytes, Math.abs(keyEnd));
    if (i === FAIL) return FAIL;
    i = endOfValue(bytes, i, depth + 1);
    if (i === FAIL) return FAIL;
    if (bytes[i] !== COMMA) {
      i = skipSpace(bytes, i);
      if (bytes[i] === CLOSE_BRACE) return i + 1;
      if (bytes[i] !== COMMA) return FAIL;
    }
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
  }
}

function endOfArray(bytes: Uint8Array, at: number, depth: number): number {
  if (depth > DEPTH_MAX) return endOfDeepValue(bytes, at);
  let i = bytes[at + 1]! > SPACE ? at + 1 : skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return i + 1;
  for (;;) {
    i = isDigit(bytes[i]!) ? endOfNumber(bytes, i) : endOfValue(bytes, i, depth + 1);
    if (i === FAIL) return FAIL;
    if (bytes[i] !== COMMA) {
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (bytes[i] === CLOSE_BRACKET) return i + 1;
      if (bytes[i] !== COMMA) return FAIL;
    }
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
  }
}

/** Number of values read so far that are nested deeper than `DEPTH_MAX`. Compare it before and after a value. */
export const deepReads = { count: 0 };

/** The closing bracket of each open level. */
let closers = new Uint8Array(256);

function growClosers(): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(closers.length * 2);
  larger.set(closers);
  closers = larger;
  return larger;
}

/** Reads a value of any depth without recursion. */
function endOfDeepValue(bytes: Uint8Array, at: number): number {
  deepReads.count++;
  let levels = closers;
  let open = 0;
  let i = at;
  for (;;) {
    // `i` is at the start of a value here.
    const first = bytes[i];
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      const closer = first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      do {
        if (open === levels.length) levels = growClosers();
        levels[open++] = closer;
        i++;
      } while (first === OPEN_BRACKET && bytes[i] === OPEN_BRACKET);
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (bytes[i] !== closer) {
        if (first === OPEN_BRACE) i = startOfMember(bytes, i);
        if (i === FAIL) return FAIL;
        continue;
      }
    } else {
      i = endOfValue(bytes, i, 0);
      if (i === FAIL) return FAIL;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    }
    while (open > 0 && bytes[i] === levels[open - 1]) {
      open--;
      i++;
      if (open > 0 && bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    }
    if (open === 0) return i;
    if (bytes[i] !== COMMA) return FAIL;
    i++;
    if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
    if (levels[open - 1] === CLOSE_BRACE) i = startOfMember(bytes, i);
    if (i === FAIL) return FAIL;
  }
}

/** @returns the offset of the value */
function startOfMember(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return FAIL;
  const keyEnd = Math.abs(endOfString(bytes, at));
  return keyEnd === FAIL ? FAIL : skipColon(bytes, keyEnd);
}
