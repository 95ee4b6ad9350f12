import { randomInt } from 'node:crypto';
import { MESSAGE_BYTES_MAX } from '@playline/contracts';
import {
  BACKSLASH,
  CHAR_E,
  CHAR_U,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  DIGIT_0,
  DIGIT_9,
  endOfString,
  endOfValue,
  HEX_VALUES,
  LOWER_CASE,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  POINT,
  QUOTE,
  skipColon,
  skipSpace,
} from './json.ts';
import { FIELD, type Field, ROW_SHIFT, type ScanState } from './ranges.ts';

/** Length of `\uXXXX`. */
const ESCAPE_BYTES = 6;
/** An empty key, a digit and a comma. */
const MEMBER_BYTES_MIN = 5;
const MEMBERS_MAX = Math.ceil(MESSAGE_BYTES_MAX / MEMBER_BYTES_MIN);
/** A power of two that is more than twice the maximum number of members. */
const SLOTS = 16_384;
/** The keys of smaller objects are compared without the hash table. */
const SMALL_OBJECT_MEMBERS = 16;
/**
 * The hash is seeded with random numbers, so that clients cannot construct colliding keys. Comparing such keys would
 * take a thousand times as long.
 */
const HASH_START = randomInt(2 ** 32);
const HASH_FACTOR = randomInt(2 ** 31) * 2 + 1;
/** The decoded byte for each character after a backslash. */
const SIMPLE = new Uint8Array(256);
for (const [character, decoded] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [
  ...Buffer.from(pair),
]))
  SIMPLE[character!] = decoded!;

/**
 * Finds the members of a free-form object, at any depth, that a later duplicate key replaces. Memory is allocated
 * once and keys are compared as bytes, so that thousands of short keys do not cost much more than the scan.
 */
export class DuplicateKeys {
  #bytes: Buffer = Buffer.alloc(0);
  #base = 0;
  /** By key offset: the end of the member if it is omitted, otherwise 0. */
  readonly #ends = new Int32Array(MESSAGE_BYTES_MAX);
  /** Size of the stack of members of open objects. */
  #members = 0;
  readonly #starts = new Int32Array(MEMBERS_MAX + 1);
  readonly #hashes = new Int32Array(MEMBERS_MAX + 1);
  /** Offset of the key in the body, or the complement of its offset in `#decoded`. */
  readonly #keys = new Int32Array(MEMBERS_MAX + 1);
  readonly #lengths = new Int32Array(MEMBERS_MAX + 1);
  /** Decoded keys. */
  readonly #decoded = Buffer.alloc(MESSAGE_BYTES_MAX);
  #decodedEnd = 0;
  readonly #slots = new Int32Array(SLOTS);

  /** @param start offset of a valid JSON object within the size and depth limits */
  find(bytes: Buffer, start: number, end: number): void {
    this.#bytes = bytes;
    this.#base = start;
    this.#members = 0;
    this.#decodedEnd = 0;
    this.#ends.fill(0, 0, end - start);
    this.#readValue(start);
  }

  /**
   * @param key offset of a string
   * @returns the offset after the omitted member and its comma, or 0 if the member is kept
   */
  endOf(key: number): number {
    return this.#ends[key - this.#base]!;
  }

  /** The depth limit bounds the recursion. */
  #readValue(at: number): number {
    const bytes = this.#bytes;
    if (bytes[at] === OPEN_BRACE) return this.#readObject(at);
    if (bytes[at] !== OPEN_BRACKET) return endOfValue(bytes, at, 0);
    let i = skipSpace(bytes, at + 1);
    while (bytes[i] !== CLOSE_BRACKET) {
      i = skipSpace(bytes, this.#readValue(i));
      if (bytes[i] === COMMA) i = skipSpace(bytes, i + 1);
    }
    return i + 1;
  }

  #readObject(at: number): number {
    const bytes = this.#bytes;
    const first = this.#members;
    const decodedBefore = this.#decodedEnd;
    let i = skipSpace(bytes, at + 1);
    while (bytes[i] !== CLOSE_BRACE) {
      const keyEnd = endOfString(bytes, i);
      this.#push(i, keyEnd);
      i = skipSpace(bytes, this.#readValue(skipColon(bytes, Math.abs(keyEnd))));
      if (bytes[i] === COMMA) i = skipSpace(bytes, i + 1);
    }
    this.#compare(first);
    this.#members = first;
    this.#decodedEnd = decodedBefore;
    return i + 1;
  }

  /** @param keyEnd the result of `endOfString` */
  #push(start: number, keyEnd: number): void {
    const member = this.#members++;
    this.#starts[member] = start;
    let source: Uint8Array = this.#bytes;
    let key = start + 1;
    let length = keyEnd - 1 - key;
    if (keyEnd < 0) {
      source = this.#decoded;
      const from = this.#decodedEnd;
      this.#decodedEnd = decode(this.#bytes, key, -keyEnd - 1, { target: source, at: from });
      length = this.#decodedEnd - from;
      key = from;
    }
    let hash = HASH_START;
    for (let i = key; i < key + length; i++) {
      hash = Math.imul(hash ^ source[i]!, HASH_FACTOR);
      // Without this step, the low bits of the hash would depend only on the low bits of the seed.
      hash ^= hash >>> 15;
    }
    this.#hashes[member] = hash;
    this.#keys[member] = keyEnd < 0 ? ~key : key;
    this.#lengths[member] = length;
  }

  /** Omits the members from `first` that have a later duplicate. */
  #compare(first: number): void {
    const last = this.#members - 1;
    if (last - first < SMALL_OBJECT_MEMBERS) {
      for (let member = first; member < last; member++)
        for (let later = member + 1; later <= last; later++) if (this.#isSame(member, later)) this.#omit(member);
      return;
    }
    let mask = 1;
    while (mask < 2 * (last - first + 1)) mask *= 2;
    mask--;
    const slots = this.#slots;
    slots.fill(-1, 0, mask + 1);
    for (let member = last; member >= first; member--) {
      const hash = this.#hashes[member]!;
      let slot = (hash ^ (hash >>> 15)) & mask;
      while (slots[slot]! >= 0 && !this.#isSame(member, slots[slot]!)) slot = (slot + 1) & mask;
      if (slots[slot]! >= 0) this.#omit(member);
      else slots[slot] = member;
    }
  }

  /** Omits a member up to the start of the next member, which always exists. */
  #omit(member: number): void {
    this.#ends[this.#starts[member]! - this.#base] = this.#starts[member + 1]!;
  }

  #isSame(a: number, b: number): boolean {
    const length = this.#lengths[a]!;
    if (this.#hashes[a] !== this.#hashes[b] || length !== this.#lengths[b]) return false;
    const [keyA, keyB] = [this.#keys[a]!, this.#keys[b]!];
    const sourceA = keyA < 0 ? this.#decoded : this.#bytes;
    const sourceB = keyB < 0 ? this.#decoded : this.#bytes;
    const [fromA, fromB] = [keyA < 0 ? ~keyA : keyA, keyB < 0 ? ~keyB : keyB];
    for (let i = 0; i < length; i++) if (sourceA[fromA + i] !== sourceB[fromB + i]) return false;
    return true;
  }
}

/**
 * Decodes an escaped string to UTF-8. Lone surrogates become U+FFFD.
 * @returns the offset after the decoded string
 */
function decode(
  bytes: Uint8Array,
  from: number,
  to: number,
  { target, at }: { target: Uint8Array; at: number },
): number {
  let end = at;
  for (let i = from; i < to; ) {
    if (bytes[i] !== BACKSLASH) target[end++] = bytes[i++]!;
    else if (bytes[i + 1] !== CHAR_U) {
      target[end++] = SIMPLE[bytes[i + 1]!]!;
      i += 2;
    } else {
      let code = readUnit(bytes, i);
      if (isSurrogate(bytes, i)) {
        const isComplete = isPair(bytes, i);
        code = isComplete ? 0x10000 + ((code & 0x3ff) << 10) + (readUnit(bytes, i + ESCAPE_BYTES) & 0x3ff) : 0xfffd;
        if (isComplete) i += ESCAPE_BYTES;
      }
      i += ESCAPE_BYTES;
      end = putCodePoint(target, end, code);
    }
  }
  return end;
}

function readUnit(bytes: Uint8Array, at: number): number {
  let unit = 0;
  for (let i = at + 2; i < at + ESCAPE_BYTES; i++) unit = unit * 16 + HEX_VALUES[bytes[i]!]!;
  return unit;
}

function putCodePoint(target: Uint8Array, at: number, code: number): number {
  let end = at;
  if (code < 0x80) target[end++] = code;
  else {
    if (code < 0x800) target[end++] = 0xc0 | (code >> 6);
    else {
      if (code < 0x10000) target[end++] = 0xe0 | (code >> 12);
      else {
        target[end++] = 0xf0 | (code >> 18);
        target[end++] = 0x80 | ((code >> 12) & 0x3f);
      }
      target[end++] = 0x80 | ((code >> 6) & 0x3f);
    }
    target[end++] = 0x80 | (code & 0x3f);
  }
  return end;
}

/** Returns true for an escape from `\uD8xx` to `\uDFxx`. */
function isSurrogate(bytes: Uint8Array, at: number): boolean {
  return HEX_VALUES[bytes[at + 2]!] === 0xd && HEX_VALUES[bytes[at + 3]!]! >= 8;
}

/** Returns true for the first escape of a surrogate pair. */
function isPair(bytes: Uint8Array, at: number): boolean {
  const next = at + ESCAPE_BYTES;
  if (HEX_VALUES[bytes[at + 3]!]! >= 0xc || bytes[next] !== BACKSLASH || bytes[next + 1] !== CHAR_U) return false;
  return isSurrogate(bytes, next) && HEX_VALUES[bytes[next + 3]!]! >= 0xc;
}

/** ClickHouse stores integers in signed or unsigned 64 bits. */
const INTEGER_MAX = Buffer.from('18446744073709551615');
const INTEGER_MIN = Buffer.from('9223372036854775808');
/** Numbers below 10^308 fit in a double, and numbers from 10^309 do not. */
const DOUBLE_POWER_MAX = 308;
/** The first digits of the largest double, to compare numbers between these powers. */
const DOUBLE_MAX = Buffer.from('1797693134862315');
/** Exceeds the number of digits in any message. */
const EXPONENT_MAX = 1_000_000;
const REPLACEMENT = Buffer.from('\\ufffd');
const duplicateKeys = new DuplicateKeys();
/** Up to this size, copying in a loop is faster. */
const LOOP_BYTES_MAX = 64;

/**
 * Rewrites free-form objects that ClickHouse would misread or refuse. Lone surrogates become U+FFFD, integers beyond
 * 64 bits and numbers too large for a double become strings, and only the last of several duplicate keys is kept. The
 * rewritten JSON is appended to the body.
 */
export function makeReadable(state: ScanState, message: number): void {
  for (const field of [FIELD.properties, FIELD.traits])
    if (((state.unsafe[message]! | state.duplicateKeys[message]!) & (1 << field)) !== 0) rewrite(state, message, field);
}

function rewrite(state: ScanState, message: number, field: Field): void {
  const { batch } = state;
  const slot = (message << ROW_SHIFT) + field;
  const [start, end] = [batch.starts[slot]!, batch.ends[slot]!];
  const at = batch.body.length;
  // In the worst case, each number of five bytes and a comma gains two quotes.
  ensureCapacity(state, at + end - start + ((end - start) >> 1) + 2);
  const hasDuplicateKeys = (state.duplicateKeys[message]! & (1 << field)) !== 0;
  if (hasDuplicateKeys) duplicateKeys.find(state.bytes, start, end);
  const writer = new Rewriter(state.bytes, start, { at, duplicateKeys: hasDuplicateKeys ? duplicateKeys : null });
  const to = writer.run(end);
  if (to === at) return;
  batch.body = state.bytes.subarray(0, to);
  batch.starts[slot] = at;
  batch.ends[slot] = to;
}

function ensureCapacity(state: ScanState, bytes: number): void {
  const { batch } = state;
  if (state.bytes.length >= bytes) return;
  // The size doubles, so that the batch is not copied for every rewritten message.
  const larger = Buffer.allocUnsafeSlow(Math.max(bytes, state.bytes.length * 2));
  batch.body.copy(larger);
  state.bytes = larger;
  batch.body = larger.subarray(0, batch.body.length);
}

const isDigit = (byte: number): boolean => byte >= DIGIT_0 && byte <= DIGIT_9;

/** Copies JSON with changes to the end of its buffer. Copies nothing if nothing changes. */
class Rewriter {
  readonly #bytes: Buffer;
  /** Offset of the first byte that has not been copied yet. */
  #from: number;
  #to: number;
  readonly #duplicateKeys: DuplicateKeys | null;

  constructor(bytes: Buffer, from: number, { at, duplicateKeys }: { at: number; duplicateKeys: DuplicateKeys | null }) {
    this.#bytes = bytes;
    this.#from = from;
    this.#to = at;
    this.#duplicateKeys = duplicateKeys;
  }

  /** @returns the offset after the copy, which equals its start if nothing changed */
  run(end: number): number {
    const bytes = this.#bytes;
    const start = this.#to;
    for (let i = this.#from; i < end; ) {
      const byte = bytes[i]!;
      if (byte === QUOTE) i = this.#omit(i) ?? this.#string(i);
      else if (isDigit(byte) || byte === MINUS) i = this.#number(i);
      else i++;
    }
    if (this.#to !== start) this.#copy(end);
    return this.#to;
  }

  /** @returns the offset after the member if it is omitted, otherwise null */
  #omit(at: number): number | null {
    const end = this.#duplicateKeys === null ? 0 : this.#duplicateKeys.endOf(at);
    if (end === 0) return null;
    this.#copy(at);
    this.#from = end;
    return end;
  }

  #string(at: number): number {
    const bytes = this.#bytes;
    let i = at + 1;
    while (bytes[i] !== QUOTE) {
      if (bytes[i] !== BACKSLASH) i++;
      else if (bytes[i + 1] !== CHAR_U) i += 2;
      else if (!isSurrogate(bytes, i)) i += ESCAPE_BYTES;
      else if (isPair(bytes, i)) i += 2 * ESCAPE_BYTES;
      else {
        this.#copy(i);
        for (const byte of REPLACEMENT) bytes[this.#to++] = byte;
        i += ESCAPE_BYTES;
        this.#from = i;
      }
    }
    return i + 1;
  }

  #number(at: number): number {
    const bytes = this.#bytes;
    let end = at + 1;
    while (isNumberByte(bytes[end]!)) end++;
    if (isReadable(bytes, at, end)) return end;
    this.#copy(at);
    bytes[this.#to++] = QUOTE;
    this.#copy(end);
    bytes[this.#to++] = QUOTE;
    return end;
  }

  #copy(end: number): void {
    const bytes = this.#bytes;
    if (end - this.#from > LOOP_BYTES_MAX) {
      bytes.copyWithin(this.#to, this.#from, end);
      this.#to += end - this.#from;
      this.#from = end;
    } else while (this.#from < end) bytes[this.#to++] = bytes[this.#from++]!;
  }
}

const isNumberByte = (byte: number): boolean =>
  isDigit(byte) || byte === POINT || byte === MINUS || byte === PLUS || (byte | LOWER_CASE) === CHAR_E;

/** Returns true if ClickHouse can store the number. Compares bytes, because decoding takes ten times as long. */
function isReadable(bytes: Buffer, start: number, end: number): boolean {
  const isNegative = bytes[start] === MINUS;
  let first = isNegative ? start + 1 : start;
  while (bytes[first] === DIGIT_0) first++;
  let i = first;
  while (isDigit(bytes[i]!)) i++;
  const digits = i - first;
  if (i === end) {
    const limit = isNegative ? INTEGER_MIN : INTEGER_MAX;
    return digits < limit.length || (digits === limit.length && compareDigits(bytes, first, limit) <= 0);
  }
  let power = digits;
  if (bytes[i] === POINT) {
    i++;
    if (digits === 0) {
      first = i;
      while (bytes[first] === DIGIT_0) first++;
      power = i - first;
    }
    while (isDigit(bytes[i]!)) i++;
  }
  if (!isDigit(bytes[first]!)) return true;
  if (i < end) power += parseExponent(bytes, i + 1, end);
  if (power !== DOUBLE_POWER_MAX + 1) return power <= DOUBLE_POWER_MAX;
  const order = compareDigits(bytes, first, DOUBLE_MAX);
  return order === 0 ? Number.isFinite(Number(bytes.toString('latin1', start, end))) : order < 0;
}

function parseExponent(bytes: Uint8Array, start: number, end: number): number {
  let exponent = 0;
  for (let i = start; i < end && exponent < EXPONENT_MAX; i++)
    if (isDigit(bytes[i]!)) exponent = exponent * 10 + bytes[i]! - DIGIT_0;
  return bytes[start] === MINUS ? -exponent : exponent;
}

/** Compares digits, ignoring a decimal point. */
function compareDigits(bytes: Uint8Array, start: number, limit: Uint8Array): number {
  let i = start;
  for (const digit of limit) {
    if (bytes[i] === POINT) i++;
    const actual = isDigit(bytes[i]!) ? bytes[i++]! : DIGIT_0;
    if (actual !== digit) return actual - digit;
  }
  return 0;
}
