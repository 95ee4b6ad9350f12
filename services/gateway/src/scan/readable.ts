import { FIELD, type Field, ROW_SHIFT } from '@playline/events';
import { BACKSLASH, DIGIT_0, DIGIT_9, HEX_VALUES, LETTER_E, LETTER_U, LOWER_CASE, MINUS, QUOTE } from './json.ts';
import type { ScanState } from './state.ts';

/** What ClickHouse holds an integer in: signed or unsigned 64 bits. */
const INTEGER_MAX = Buffer.from('18446744073709551615');
const INTEGER_MIN = Buffer.from('9223372036854775808');
/** Below ten to this power every number is one that a double holds; from the next on none is. */
const DOUBLE_POWER_MAX = 308;
/** More digits than any exponent that matters; what is longer is asked of `Number`. */
const EXPONENT_DIGITS_MAX = 6;
const REPLACEMENT = Buffer.from('\\ufffd');
const POINT = 0x2e;
const PLUS = 0x2b;
/** Bytes of `\uXXXX`. */
const ESCAPE_BYTES = 6;

/**
 * Rewrites the free-form objects of a message that hold what ClickHouse refuses, which makes it read the whole object as
 * empty and fail every query that casts it to `JSON`: half a surrogate pair becomes U+FFFD, an integer beyond 64 bits or
 * a number beyond a double becomes a string of the same characters. What is rewritten comes to stand behind the body.
 */
export function makeReadable(state: ScanState, message: number): void {
  for (const field of [FIELD.properties, FIELD.traits])
    if ((state.odd[message]! & (1 << field)) !== 0) rewrite(state, message, field);
}

function rewrite(state: ScanState, message: number, field: Field): void {
  const { batch } = state;
  const slot = (message << ROW_SHIFT) + field;
  const [start, end] = [batch.starts[slot]!, batch.ends[slot]!];
  const at = batch.body.length;
  // A number of five bytes and its comma gain two quotes.
  makeRoom(state, at + end - start + ((end - start) >> 1) + 2);
  const writer = new Rewriter(state.bytes, start, at);
  const to = writer.run(end);
  if (to === at) return;
  batch.body = state.bytes.subarray(0, to);
  batch.starts[slot] = at;
  batch.ends[slot] = to;
}

function makeRoom(state: ScanState, bytes: number): void {
  const { batch } = state;
  if (state.bytes.length >= bytes) return;
  // Twice as much, so that a batch of many such messages is not copied for each.
  const larger = Buffer.allocUnsafeSlow(Math.max(bytes, state.bytes.length * 2));
  batch.body.copy(larger);
  state.bytes = larger;
  batch.body = larger.subarray(0, batch.body.length);
}

const isDigit = (byte: number): boolean => byte >= DIGIT_0 && byte <= DIGIT_9;

/** Copies JSON text within one buffer, from where it is to where there is room, as soon as something has to change. */
class Rewriter {
  readonly #bytes: Buffer;
  /** The first byte that is not copied yet. */
  #from: number;
  #to: number;

  constructor(bytes: Buffer, from: number, to: number) {
    this.#bytes = bytes;
    this.#from = from;
    this.#to = to;
  }

  /** @returns the place after the copy; where it would begin, when nothing had to change */
  run(end: number): number {
    const bytes = this.#bytes;
    const began = this.#to;
    for (let i = this.#from; i < end; ) {
      const byte = bytes[i]!;
      if (byte === QUOTE) i = this.#string(i);
      else if (isDigit(byte) || byte === MINUS) i = this.#number(i);
      else i++;
    }
    if (this.#to !== began) this.#copy(end);
    return this.#to;
  }

  #string(at: number): number {
    const bytes = this.#bytes;
    let i = at + 1;
    while (bytes[i] !== QUOTE) {
      if (bytes[i] !== BACKSLASH) i++;
      else if (bytes[i + 1] !== LETTER_U) i += 2;
      else if (!isSurrogate(bytes, i)) i += ESCAPE_BYTES;
      else if (isPair(bytes, i)) i += 2 * ESCAPE_BYTES;
      else {
        this.#copy(i);
        this.#to += REPLACEMENT.copy(bytes, this.#to);
        i += ESCAPE_BYTES;
        this.#from = i;
      }
    }
    return i + 1;
  }

  #number(at: number): number {
    const bytes = this.#bytes;
    let end = at + 1;
    while (isOfNumber(bytes[end]!)) end++;
    if (isReadable(bytes, at, end)) return end;
    this.#copy(at);
    bytes[this.#to++] = QUOTE;
    this.#copy(end);
    bytes[this.#to++] = QUOTE;
    return end;
  }

  #copy(end: number): void {
    this.#bytes.copyWithin(this.#to, this.#from, end);
    this.#to += end - this.#from;
    this.#from = end;
  }
}

const isOfNumber = (byte: number): boolean =>
  isDigit(byte) || byte === POINT || byte === MINUS || byte === PLUS || (byte | LOWER_CASE) === LETTER_E;

/** True for `\uD8xx` to `\uDFxx`. */
function isSurrogate(bytes: Uint8Array, at: number): boolean {
  return HEX_VALUES[bytes[at + 2]!] === 0xd && HEX_VALUES[bytes[at + 3]!]! >= 8;
}

/** True for a surrogate that begins a pair, with the one that ends it behind. */
function isPair(bytes: Uint8Array, at: number): boolean {
  const next = at + ESCAPE_BYTES;
  if (HEX_VALUES[bytes[at + 3]!]! >= 0xc || bytes[next] !== BACKSLASH || bytes[next + 1] !== LETTER_U) return false;
  return isSurrogate(bytes, next) && HEX_VALUES[bytes[next + 3]!]! >= 0xc;
}

/** True for a number of JSON that ClickHouse can hold. */
function isReadable(bytes: Buffer, start: number, end: number): boolean {
  const isNegative = bytes[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  let i = first;
  while (isDigit(bytes[i]!)) i++;
  const digits = i - first;
  if (i === end) {
    const limit = isNegative ? INTEGER_MIN : INTEGER_MAX;
    return digits < limit.length || (digits === limit.length && bytes.compare(limit, 0, limit.length, first, end) <= 0);
  }
  if (bytes[i] === POINT)
    do i++;
    while (isDigit(bytes[i]!));
  if (end - i > EXPONENT_DIGITS_MAX) return isDouble(bytes, start, end);
  const exponent = i === end ? 0 : Number(bytes.toString('latin1', i + 1, end));
  if (digits + exponent <= DOUBLE_POWER_MAX) return true;
  if (bytes[first] !== DIGIT_0 && digits + exponent > DOUBLE_POWER_MAX + 1) return false;
  return isDouble(bytes, start, end);
}

function isDouble(bytes: Buffer, start: number, end: number): boolean {
  return Number.isFinite(Number(bytes.toString('latin1', start, end)));
}
