import { BACKSLASH, DIGIT_0, DIGIT_9, LETTER_E, LETTER_U, LOWER_CASE, MINUS, PLUS, POINT, QUOTE } from './json.ts';
import { FIELD, type Field, ROW_SHIFT, type ScanState } from './ranges.ts';
import { ESCAPE_BYTES, isPair, isSurrogate, Repeats } from './repeats.ts';

/** Largest integer of ClickHouse, which stores integers in signed or unsigned 64 bits. */
const INTEGER_MAX = Buffer.from('18446744073709551615');
const INTEGER_MIN = Buffer.from('9223372036854775808');
/** Every number below ten to this power fits a double. From ten times that power on none does. */
const DOUBLE_POWER_MAX = 308;
/** The first digits of the largest double. They decide whether a number of the same power of ten fits. */
const DOUBLE_MAX = Buffer.from('1797693134862315');
/** More than the digits of any message, so no mantissa makes up for such an exponent. */
const EXPONENT_MAX = 1_000_000;
const REPLACEMENT = Buffer.from('\\ufffd');
const repeats = new Repeats();
/** Below this many bytes a loop copies faster than a call does. */
const LOOP_BYTES_MAX = 64;

/**
 * Rewrites the free-form objects of a message that ClickHouse would not read as they were meant. Values which it
 * refuses make it read the whole object as empty and fail every query that casts it to `JSON`: half a surrogate pair
 * becomes U+FFFD; an integer beyond 64 bits or a number beyond a double becomes a string of the same characters. Of
 * equal keys it reads the first, so only the last is kept. The rewritten text is placed after the body.
 */
export function makeReadable(state: ScanState, message: number): void {
  for (const field of [FIELD.properties, FIELD.traits])
    if (((state.odd[message]! | state.repeated[message]!) & (1 << field)) !== 0) rewrite(state, message, field);
}

function rewrite(state: ScanState, message: number, field: Field): void {
  const { batch } = state;
  const slot = (message << ROW_SHIFT) + field;
  const [start, end] = [batch.starts[slot]!, batch.ends[slot]!];
  const at = batch.body.length;
  // Worst case: each number has five bytes and a comma, and gains two quotes.
  makeRoom(state, at + end - start + ((end - start) >> 1) + 2);
  const isRepeated = (state.repeated[message]! & (1 << field)) !== 0;
  if (isRepeated) repeats.find(state.bytes, start, end);
  const writer = new Rewriter(state.bytes, start, { at, repeats: isRepeated ? repeats : null });
  const to = writer.run(end);
  if (to === at) return;
  batch.body = state.bytes.subarray(0, to);
  batch.starts[slot] = at;
  batch.ends[slot] = to;
}

function makeRoom(state: ScanState, bytes: number): void {
  const { batch } = state;
  if (state.bytes.length >= bytes) return;
  // Doubled, so that a batch of many such messages is not copied for each.
  const larger = Buffer.allocUnsafeSlow(Math.max(bytes, state.bytes.length * 2));
  batch.body.copy(larger);
  state.bytes = larger;
  batch.body = larger.subarray(0, batch.body.length);
}

const isDigit = (byte: number): boolean => byte >= DIGIT_0 && byte <= DIGIT_9;

/** Copies JSON text to the end of its buffer with the necessary changes. Without any it copies nothing. */
class Rewriter {
  readonly #bytes: Buffer;
  /** The first byte that is not copied yet. */
  #from: number;
  #to: number;
  readonly #repeats: Repeats | null;

  constructor(bytes: Buffer, from: number, { at, repeats }: { at: number; repeats: Repeats | null }) {
    this.#bytes = bytes;
    this.#from = from;
    this.#to = at;
    this.#repeats = repeats;
  }

  /** @returns the place after the copy; the place where it would begin when nothing had to change */
  run(end: number): number {
    const bytes = this.#bytes;
    const began = this.#to;
    for (let i = this.#from; i < end; ) {
      const byte = bytes[i]!;
      if (byte === QUOTE) i = this.#leaveOut(i) ?? this.#string(i);
      else if (isDigit(byte) || byte === MINUS) i = this.#number(i);
      else i++;
    }
    if (this.#to !== began) this.#copy(end);
    return this.#to;
  }

  /** @returns the place after a member that is left out; null for any other string */
  #leaveOut(at: number): number | null {
    const end = this.#repeats === null ? 0 : this.#repeats.endOf(at);
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
      else if (bytes[i + 1] !== LETTER_U) i += 2;
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
    while (isOfNumber(bytes[end]!)) end++;
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

const isOfNumber = (byte: number): boolean =>
  isDigit(byte) || byte === POINT || byte === MINUS || byte === PLUS || (byte | LOWER_CASE) === LETTER_E;

/** True for a JSON number that ClickHouse can store. Compares bytes: decoding each number would cost ten scans. */
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
  if (i < end) power += exponentOf(bytes, i + 1, end);
  if (power !== DOUBLE_POWER_MAX + 1) return power <= DOUBLE_POWER_MAX;
  const side = compareDigits(bytes, first, DOUBLE_MAX);
  return side === 0 ? Number.isFinite(Number(bytes.toString('latin1', start, end))) : side < 0;
}

function exponentOf(bytes: Uint8Array, start: number, end: number): number {
  let exponent = 0;
  for (let i = start; i < end && exponent < EXPONENT_MAX; i++)
    if (isDigit(bytes[i]!)) exponent = exponent * 10 + bytes[i]! - DIGIT_0;
  return bytes[start] === MINUS ? -exponent : exponent;
}

/** Compares the first digits with those of the limit, ignoring a decimal point. */
function compareDigits(bytes: Uint8Array, start: number, limit: Uint8Array): number {
  let i = start;
  for (const digit of limit) {
    if (bytes[i] === POINT) i++;
    const own = isDigit(bytes[i]!) ? bytes[i++]! : DIGIT_0;
    if (own !== digit) return own - digit;
  }
  return 0;
}
