import type { IncomingMessage } from 'node:http';
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  type ZlibOptions,
  zstdDecompressSync,
} from 'node:zlib';
import { PublicError } from '@playline/errors';

/** What the headers say about a body that is not read yet. */
export interface BodyPlan {
  /** Most bytes of the body after decompression. */
  readonly bytesMax: number;
  /** Most bytes as sent. */
  readonly rawBytesMax: number;
  /** From content-length; null when the body comes in chunks. */
  readonly declaredBytes: number | null;
  /** Null when the body is not compressed. */
  readonly coding: Coding | null;
}

/** What zlib returns with `info`: the bytes it made, and how many input bytes it used. */
interface Decoded {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}
type DecodeOptions = Pick<ZlibOptions, 'maxOutputLength' | 'info'>;
/** Returns `Decoded` when `info` is set, which zlib's types do not say. */
type Decode = (bytes: Uint8Array, options: DecodeOptions) => unknown;
export interface Coding {
  readonly name: string;
  readonly decode: Decode;
  /** Whether the bytes can be of this coding at all. Others fail before any memory is used. */
  readonly begins: (raw: Buffer) => boolean;
  /** Most bytes that one compressed byte can become. */
  readonly expansionMax: number;
}

/**
 * Compression can make a body slightly longer if it cannot be compressed: by less than a sixteenth, plus the frame. Any
 * more could only be Huffman tables, which cost more to read than text.
 */
const CODING_SLACK_SHARE = 1 / 16;
const CODING_FRAME_BYTES = 1024;
/** RFC 9659 lets a decoder refuse windows above 8 MiB; without it one small frame could ask for 128 MiB. */
const ZSTD_WINDOW_LOG_MAX = 23;
/** Level of "deflate" in the first byte of a zlib stream (RFC 1950). */
const ZLIB_METHOD = 8;

const zstdOptions = { params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } };

/**
 * The name means the zlib format (RFC 9110, 8.4.1.2). Some callers send the bare deflate stream, which browsers accept
 * too.
 */
function decodeDeflate(bytes: Uint8Array, options: ZlibOptions): Buffer {
  const [first = 0, second = 0] = bytes;
  const zlib = (first & 15) === ZLIB_METHOD && ((first << 8) | second) % 31 === 0;
  return zlib ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
}

/** Deflate codes at most 258 bytes in two bits: RFC 1951, 3.2.5. */
const DEFLATE_EXPANSION_MAX = 1032;
const deflate = { decode: decodeDeflate, begins: () => true, expansionMax: DEFLATE_EXPANSION_MAX };
/** RFC 1952, 2.3.1. */
const isGzip = ([first, second]: Buffer) => first === 0x1f && second === 0x8b;
const gzip = { decode: gunzipSync, begins: isGzip, expansionMax: DEFLATE_EXPANSION_MAX };
const brotli = { decode: brotliDecompressSync, begins: () => true, expansionMax: Number.POSITIVE_INFINITY };
/** A frame, or one that is skipped: RFC 8878, 3.1. */
const isZstd = (raw: Buffer) =>
  raw.length >= 4 && (raw.readUInt32LE() === 0xfd2fb528 || raw.readUInt32LE() >>> 4 === 0x184d2a5);
const zstd = {
  decode: (bytes: Uint8Array, options: DecodeOptions) => zstdDecompressSync(bytes, { ...zstdOptions, ...options }),
  begins: isZstd,
  expansionMax: Number.POSITIVE_INFINITY,
};

const CODINGS: Readonly<Record<string, Omit<Coding, 'name'>>> = { gzip, 'x-gzip': gzip, deflate, br: brotli, zstd };

/** The most bytes that can have been made before decompression failed: zlib does not say how many. */
function decodedMax(raw: Buffer, { begins, expansionMax }: Coding, bytesMax: number): number {
  // An empty body becomes nothing; for it 0 times no bound would be NaN.
  return raw.length > 0 && begins(raw) ? Math.min(bytesMax, raw.length * expansionMax) : raw.length;
}

interface BodyType {
  readonly name: string;
  readonly pattern: RegExp;
}

/**
 * Only `application/json`, as the contract says; `application/*+json` names other formats, and a browser's
 * `text/plain` would spare a preflight that the key header needs anyway. Parameters are allowed; JSON is UTF-8.
 */
const JSON_BODY: BodyType = { name: 'application/json', pattern: /^application\/json[ \t]*(?:;|$)/i };
const FORM_BODY: BodyType = {
  name: 'application/x-www-form-urlencoded',
  pattern: /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i,
};
const CHUNKED = /^chunked$/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^\s";]+)/i;

/**
 * Checks content-type, content-encoding and content-length before any byte of the body is read.
 * @throws PublicError VALIDATION_ERROR, with `details.header` or `details.limitBytes`
 */
export function planJsonBody(request: IncomingMessage, bytesMax: number): BodyPlan {
  return planBody(request, bytesMax, JSON_BODY);
}

/** The same as `planJsonBody`, for what an HTML form sends. */
export function planFormBody(request: IncomingMessage, bytesMax: number): BodyPlan {
  return planBody(request, bytesMax, FORM_BODY);
}

function planBody(request: IncomingMessage, bytesMax: number, { name, pattern }: BodyType): BodyPlan {
  const type = request.headers['content-type'];
  if (type === undefined || !pattern.test(type)) throw wrongHeader('content-type', `The body must be ${name}.`);
  if (type.length > name.length) {
    const charset = CHARSET.exec(type)?.[1]?.toLowerCase();
    if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
      throw wrongHeader('content-type', 'The body must be UTF-8.');
  }
  // Node decodes chunks, but leaves any other transfer coding as it is.
  if (!CHUNKED.test(request.headers['transfer-encoding'] ?? 'chunked'))
    throw wrongHeader('transfer-encoding', 'The body may be sent in chunks; compress it by content-encoding.');
  const coding = codingOf(request.headers['content-encoding']);
  const length = request.headers['content-length'];
  const declaredBytes = length === undefined ? null : Number(length);
  const rawBytesMax = coding === null ? bytesMax : bytesMax * (1 + CODING_SLACK_SHARE) + CODING_FRAME_BYTES;
  if (declaredBytes !== null && declaredBytes > rawBytesMax) throw tooLarge(bytesMax);
  return { bytesMax, rawBytesMax, declaredBytes, coding };
}

/**
 * Decompresses a body that has been read whole, and stops at the limit: a bomb never inflates further.
 * Synchronous on purpose: measured, zlib's thread pool costs two to four times the CPU of the call itself at every
 * size that occurs, and the limits bound the call: a usual batch 0.1 ms, 1 MiB of text 2.5 ms as gzip and 8 ms as
 * brotli. 1 MiB of Huffman tables that code nothing takes 70 ms, so a caller should pay for what it sends as well.
 * @param onDecoded told how many bytes came of it; when it fails, the most that can have come
 * @throws PublicError VALIDATION_ERROR when it is too large, broken, or followed by bytes that are not part of it
 */
export function decodeBody(raw: Buffer, { coding, bytesMax }: BodyPlan, onDecoded?: (bytes: number) => void): Buffer {
  if (coding === null) return raw;
  onDecoded?.(decodedMax(raw, coding, bytesMax));
  try {
    const { buffer, engine } = coding.decode(raw, { maxOutputLength: bytesMax, info: true }) as Decoded;
    // Of the codings only gzip notices data after its end. The others ignore it, and part of a batch would be lost with
    // a 200.
    if (engine.bytesWritten !== raw.length) throw new Error(`${raw.length - engine.bytesWritten} bytes follow its end`);
    onDecoded?.(buffer.length);
    return buffer;
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax);
    throw wrongHeader('content-encoding', `The body is not readable as ${coding.name}.`, cause);
  }
}

export function tooLarge(limitBytes: number): PublicError {
  const message = `The body is larger than ${limitBytes} bytes after decompression.`;
  return new PublicError('VALIDATION_ERROR', { message, details: { limitBytes } });
}

function codingOf(header: string | undefined): Coding | null {
  if (header === undefined) return null;
  const name = header.trim().toLowerCase();
  if (name === '' || name === 'identity') return null;
  const coding = Object.hasOwn(CODINGS, name) ? CODINGS[name] : undefined;
  if (coding === undefined)
    throw wrongHeader('content-encoding', 'The body may be sent as gzip, deflate, br, zstd or as it is.');
  return { name, ...coding };
}

function wrongHeader(header: string, message: string, cause?: unknown): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, details: { header }, cause });
}
