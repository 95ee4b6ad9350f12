import { isUtf8 } from 'node:buffer';
import { isJsonObject } from './texts.ts';

/** The location and cause of a syntax or encoding error: contract, "Unreadable JSON". */
export type JsonErrorDetails = {
  /** Offset of the first invalid byte in the decompressed body, from 0. */
  readonly offset: number;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Index in `messages`, from 0; absent outside that array. */
  readonly messageIndex?: number;
  /** At most 20 characters. */
  readonly found: string;
};

/** Message and details of a 400 response. */
export interface JsonError {
  readonly message: string;
  readonly details: JsonErrorDetails | null;
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** RFC 8259, section 8.1, allows parsers to ignore a byte order mark. */
export function withoutByteOrderMark(body: Buffer): Buffer {
  if (body[0] !== BYTE_ORDER_MARK[0] || body[1] !== BYTE_ORDER_MARK[1] || body[2] !== BYTE_ORDER_MARK[2]) return body;
  return body.subarray(BYTE_ORDER_MARK.length);
}

export type JsonObjectResult =
  | { readonly kind: 'object'; readonly object: Readonly<Record<string, unknown>> }
  | ({ readonly kind: 'refused' } & JsonError);

/** Parses a body that must be a JSON object in UTF-8. */
export function parseJsonObject(body: Buffer): JsonObjectResult {
  const json = withoutByteOrderMark(body);
  let document: unknown;
  try {
    // Decoding without a check would replace invalid bytes with U+FFFD.
    document = isUtf8(json) ? JSON.parse(json.toString('utf8')) : undefined;
  } catch {
    document = undefined;
  }
  if (document === undefined) return { kind: 'refused', ...toJsonError(body) };
  if (isJsonObject(document)) return { kind: 'object', object: document };
  return { kind: 'refused', message: 'The body must be a JSON object.', details: null };
}

/** Describes why a body cannot be parsed. Counts lines only here, to keep parsing valid bodies fast. */
export function toJsonError(body: Buffer): JsonError {
  const details = findJsonError(body);
  if (details === null) return { message: 'The body is not valid UTF-8 JSON.', details };
  const { found, line, column } = details;
  return {
    message: `The body is not valid UTF-8 JSON: unexpected ${found} in line ${line}, column ${column}.`,
    details,
  };
}

/** Returns null for valid UTF-8 JSON. */
export function findJsonError(body: Buffer): JsonErrorDetails | null {
  const json = withoutByteOrderMark(body);
  // The trailing zeros terminate every loop.
  const bytes = Buffer.alloc(json.length + END_BYTES);
  json.copy(bytes);
  const finder = new JsonErrorFinder(bytes, json.length);
  const at = finder.run();
  if (at === null) return null;
  let line = 1;
  let lineStart = 0;
  for (let i = 0; i < at; i++) {
    if (bytes[i] !== LINE_FEED) continue;
    line++;
    lineStart = i + 1;
  }
  const column = bytes.toString('utf8', lineStart, at).length + 1;
  const location = { offset: at + body.length - json.length, line, column };
  const { messageIndex } = finder;
  const found = at === json.length ? 'end of body' : describe(bytes, at);
  return messageIndex === null ? { ...location, found } : { ...location, messageIndex, found };
}

/** No check reads further past the end, because `false` and UTF-8 characters are shorter. */
const END_BYTES = 8;

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const CHAR_A = 0x61;
const CHAR_E = 0x65;
const CHAR_F = 0x66;
const CHAR_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const LINE_FEED = 0x0a;
const SPACE = 0x20;
/** The bit that distinguishes lower case from upper case in ASCII. */
const LOWER_CASE = 0x20;
const LITERALS = ['null', 'true', 'false'].map((text) => Buffer.from(text));

/** 1 for bytes in a string that need a check: control characters, quotes, backslashes, multi-byte characters. */
const STOPS = new Uint8Array(256).fill(1, 0, 0x20).fill(1, 0x80);
STOPS[QUOTE] = 1;
STOPS[BACKSLASH] = 1;
/** Bytes that may follow a backslash, except `u`. */
const SIMPLE_ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) SIMPLE_ESCAPES[byte] = 1;

const isSpace = (byte: number) => byte === 0x20 || byte === LINE_FEED || byte === 0x0d || byte === 0x09;
const isDigit = (byte: number) => byte >= DIGIT_0 && byte <= DIGIT_9;
const isHex = (byte: number) => isDigit(byte) || isInRange(byte | LOWER_CASE, CHAR_A, CHAR_F);
const isContinuation = (byte: number) => (byte & 0xc0) === 0x80;
const isInRange = (byte: number, from: number, to: number) => byte >= from && byte <= to;

function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isSpace(bytes[i]!)) i++;
  return i;
}

/** Checks JSON byte by byte without recursion, so that deep nesting cannot overflow the stack. */
class JsonErrorFinder {
  readonly #bytes: Uint8Array;
  readonly #length: number;
  /** Stack of expected closing brackets. */
  #closers = new Uint8Array(64);
  #depth = 0;
  /** Bounds of the last key in the outermost object, including its quotes. */
  #keyStart = 0;
  #keyEnd = 0;
  /** Number of commas so far in the current second-level array. */
  #commas = 0;

  constructor(bytes: Uint8Array, length: number) {
    this.#bytes = bytes;
    this.#length = length;
  }

  /** Returns the offset of the error, or null. */
  run(): number | null {
    const bytes = this.#bytes;
    let i = skipSpace(bytes, 0);
    for (;;) {
      const first = bytes[i]!;
      if (first === OPEN_BRACE || first === OPEN_BRACKET) {
        const closer = first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
        this.#push(closer);
        i++;
        if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
        if (bytes[i] !== closer) {
          if (closer === CLOSE_BRACE) i = this.#skipKey(i);
          if (i < 0) return ~i;
          continue;
        }
      } else {
        i = endOfScalar(bytes, i);
        if (i < 0) return ~i;
        if (bytes[i] !== COMMA) i = skipSpace(bytes, i);
      }
      while (this.#depth > 0 && bytes[i] === this.#closers[this.#depth - 1]) {
        this.#depth--;
        i = skipSpace(bytes, i + 1);
      }
      if (this.#depth === 0) return i === this.#length ? null : i;
      if (bytes[i] !== COMMA) return i;
      if (this.#depth === 2) this.#commas++;
      i++;
      if (bytes[i]! <= SPACE) i = skipSpace(bytes, i);
      if (this.#closers[this.#depth - 1] === CLOSE_BRACE) i = this.#skipKey(i);
      if (i < 0) return ~i;
    }
  }

  /** The index in `messages` at which the check stopped. */
  get messageIndex(): number | null {
    if (this.#depth < 2 || this.#closers[0] !== CLOSE_BRACE || this.#closers[1] !== CLOSE_BRACKET) return null;
    const key = Buffer.from(this.#bytes.subarray(this.#keyStart, this.#keyEnd)).toString('utf8');
    return JSON.parse(key) === 'messages' ? this.#commas : null;
  }

  #push(closer: number): void {
    if (this.#depth === this.#closers.length) {
      const larger = new Uint8Array(this.#depth * 2);
      larger.set(this.#closers);
      this.#closers = larger;
    }
    this.#closers[this.#depth++] = closer;
    if (this.#depth === 2) this.#commas = 0;
  }

  /** Skips a key and its colon. */
  #skipKey(at: number): number {
    const bytes = this.#bytes;
    if (bytes[at] !== QUOTE) return ~at;
    const end = endOfString(bytes, at);
    if (end < 0) return end;
    if (this.#depth === 1) {
      this.#keyStart = at;
      this.#keyEnd = end;
    }
    const colon = skipSpace(bytes, end);
    return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : ~colon;
  }
}

/** The `endOf…` functions return the offset after the value, or `~offset` of the error, which is negative. */
function endOfScalar(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  if (first === QUOTE) return endOfString(bytes, at);
  return first === MINUS || isDigit(first) ? endOfNumber(bytes, at) : endOfLiteral(bytes, at);
}

function endOfLiteral(bytes: Uint8Array, at: number): number {
  for (const literal of LITERALS) {
    if (bytes[at] !== literal[0]) continue;
    for (let i = 1; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return ~at;
    return at + literal.length;
  }
  return ~at;
}

function endOfString(bytes: Uint8Array, at: number): number {
  let i = at + 1;
  for (;;) {
    while (STOPS[bytes[i]!] === 0) i++;
    const byte = bytes[i]!;
    if (byte === QUOTE) return i + 1;
    if (byte === BACKSLASH) {
      i = endOfEscape(bytes, i + 1);
      if (i < 0) return i;
    } else {
      const length = utf8Length(bytes, i);
      if (length === 0) return ~i;
      i += length;
    }
  }
}

function endOfEscape(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== CHAR_U) return SIMPLE_ESCAPES[bytes[at]!] === 1 ? at + 1 : ~at;
  for (let i = at + 1; i <= at + 4; i++) if (!isHex(bytes[i]!)) return ~i;
  return at + 5;
}

function endOfNumber(bytes: Uint8Array, at: number): number {
  let i = bytes[at] === MINUS ? at + 1 : at;
  if (!isDigit(bytes[i]!)) return ~i;
  i = bytes[i] === DIGIT_0 ? i + 1 : skipDigits(bytes, i);
  if (bytes[i] === POINT) {
    i++;
    if (!isDigit(bytes[i]!)) return ~i;
    i = skipDigits(bytes, i);
  }
  if ((bytes[i]! | LOWER_CASE) !== CHAR_E) return i;
  i++;
  if (bytes[i] === MINUS || bytes[i] === PLUS) i++;
  return isDigit(bytes[i]!) ? skipDigits(bytes, i) : ~i;
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let i = at;
  while (isDigit(bytes[i]!)) i++;
  return i;
}

/** Returns the length of the multi-byte character at an offset (Unicode, table 3-7), or 0 if it is not well-formed. */
function utf8Length(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  const second = bytes[at + 1]!;
  if (isInRange(first, 0xc2, 0xdf)) return isContinuation(second) ? 2 : 0;
  if (!isContinuation(bytes[at + 2]!)) return 0;
  if (first === 0xe0) return isInRange(second, 0xa0, 0xbf) ? 3 : 0;
  if (first === 0xed) return isInRange(second, 0x80, 0x9f) ? 3 : 0;
  if (isInRange(first, 0xe1, 0xef)) return isContinuation(second) ? 3 : 0;
  if (!isContinuation(bytes[at + 3]!)) return 0;
  if (first === 0xf0) return isInRange(second, 0x90, 0xbf) ? 4 : 0;
  if (first === 0xf4) return isInRange(second, 0x80, 0x8f) ? 4 : 0;
  return isInRange(first, 0xf1, 0xf3) && isContinuation(second) ? 4 : 0;
}

const WORD = /^[A-Za-z0-9_]{1,20}/;
const VISIBLE = /^[\p{L}\p{N}\p{P}\p{S}]/u;
/** Enough bytes for the longest match of `WORD`, or for one character. */
const DESCRIBED_BYTES = 20;

/** Returns the word or character at an offset. Invisible characters are shown as `U+0009`. */
function describe(bytes: Buffer, at: number): string {
  const byte = bytes[at]!;
  if (byte >= 0x80 && utf8Length(bytes, at) === 0) return `byte 0x${byte.toString(16).toUpperCase()}`;
  const text = bytes.toString('utf8', at, at + DESCRIBED_BYTES);
  const shown = WORD.exec(text)?.[0] ?? VISIBLE.exec(text)?.[0];
  return shown ?? `U+${text.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}
