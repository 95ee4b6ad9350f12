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
import type { Reservation } from './bytes-in-flight.ts';
import { type Deadline, Deadlines } from './deadlines.ts';
import { ClientDisconnected } from './exchange.ts';
import { SMALL_BYTES } from './node-server.ts';

export interface BodyPlan {
  /** Limit after decompression. */
  readonly bytesMax: number;
  readonly rawBytesMax: number;
  readonly declaredBytes: number | null;
  readonly coding: Coding | null;
}

/** The result of a zlib function with the option `info`. */
interface Decoded {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}
type DecodeOptions = Pick<ZlibOptions, 'maxOutputLength' | 'info'>;
type Decode = (bytes: Uint8Array, options: DecodeOptions) => unknown;
export interface Coding {
  readonly name: string;
  readonly decode: Decode;
  /** Returns true if the bytes can have this encoding. Other bytes are rejected before memory is used. */
  readonly hasSignature: (raw: Buffer) => boolean;
  /** Maximum decompressed bytes per compressed byte. */
  readonly expansionMax: number;
}

/** Compression makes incompressible bodies at most a sixteenth longer, plus the frame. */
const CODING_SLACK_RATIO = 1 / 16;
const CODING_FRAME_BYTES = 1024;
/** RFC 9659 allows decoders to reject windows above 8 MiB. A small frame could otherwise request 128 MiB. */
const ZSTD_WINDOW_LOG_MAX = 23;
/** The "deflate" compression method in the first byte of a zlib stream (RFC 1950). */
const ZLIB_METHOD = 8;

const zstdOptions = { params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } };

/** "deflate" means the zlib format (RFC 9110, 8.4.1.2), but some callers send raw deflate data. */
function decodeDeflate(bytes: Uint8Array, options: ZlibOptions): Buffer {
  const [first = 0, second = 0] = bytes;
  const zlib = (first & 15) === ZLIB_METHOD && ((first << 8) | second) % 31 === 0;
  return zlib ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
}

/** Deflate encodes at most 258 bytes in two bits (RFC 1951, 3.2.5). */
const DEFLATE_EXPANSION_MAX = 1032;
const deflate = { decode: decodeDeflate, hasSignature: () => true, expansionMax: DEFLATE_EXPANSION_MAX };
/** RFC 1952, 2.3.1. */
const isGzip = ([first, second]: Buffer) => first === 0x1f && second === 0x8b;
const gzip = { decode: gunzipSync, hasSignature: isGzip, expansionMax: DEFLATE_EXPANSION_MAX };
const brotli = { decode: brotliDecompressSync, hasSignature: () => true, expansionMax: Number.POSITIVE_INFINITY };
/** A frame or a skippable frame (RFC 8878, 3.1). */
const isZstd = (raw: Buffer) =>
  raw.length >= 4 && (raw.readUInt32LE() === 0xfd2fb528 || raw.readUInt32LE() >>> 4 === 0x184d2a5);
const zstd = {
  decode: (bytes: Uint8Array, options: DecodeOptions) => zstdDecompressSync(bytes, { ...zstdOptions, ...options }),
  hasSignature: isZstd,
  expansionMax: Number.POSITIVE_INFINITY,
};

const CODINGS: Readonly<Record<string, Omit<Coding, 'name'>>> = { gzip, 'x-gzip': gzip, deflate, br: brotli, zstd };

/** Returns an upper bound, because zlib does not report the size of a failed decompression. */
function decodedMax(raw: Buffer, { hasSignature, expansionMax }: Coding, bytesMax: number): number {
  // For an empty body, 0 times infinity would be NaN.
  return raw.length > 0 && hasSignature(raw) ? Math.min(bytesMax, raw.length * expansionMax) : raw.length;
}

/** `application/*+json` types are not accepted, because they are other formats. */
const JSON_BODY = { name: 'application/json', pattern: /^application\/json[ \t]*(?:;|$)/i };
const FORM_BODY = {
  name: 'application/x-www-form-urlencoded',
  pattern: /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i,
};
const CHUNKED = /^chunked$/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^\s";]+)/i;

/**
 * Checks the headers before the body is read.
 * @throws PublicError VALIDATION_ERROR with `details.header` or `details.limitBytes`
 */
export function planJsonBody(request: IncomingMessage, bytesMax: number): BodyPlan {
  return planBody(request, bytesMax, JSON_BODY);
}

/** Like `planJsonBody`, but for HTML forms. */
export function planFormBody(request: IncomingMessage, bytesMax: number): BodyPlan {
  return planBody(request, bytesMax, FORM_BODY);
}

function planBody(request: IncomingMessage, bytesMax: number, { name, pattern }: typeof JSON_BODY): BodyPlan {
  const type = request.headers['content-type'];
  if (type === undefined || !pattern.test(type)) throw wrongHeader('content-type', `The body must be ${name}.`);
  if (type.length > name.length) {
    const charset = CHARSET.exec(type)?.[1]?.toLowerCase();
    if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
      throw wrongHeader('content-type', 'The body must be UTF-8.');
  }
  // Node decodes only the chunked coding.
  if (!CHUNKED.test(request.headers['transfer-encoding'] ?? 'chunked'))
    throw wrongHeader(
      'transfer-encoding',
      'The transfer coding must be chunked. Use content-encoding to compress the body.',
    );
  const coding = codingOf(request.headers['content-encoding']);
  const length = request.headers['content-length'];
  const declaredBytes = length === undefined ? null : Number(length);
  const rawBytesMax = coding === null ? bytesMax : bytesMax * (1 + CODING_SLACK_RATIO) + CODING_FRAME_BYTES;
  if (declaredBytes !== null && declaredBytes > rawBytesMax) throw tooLarge(bytesMax);
  return { bytesMax, rawBytesMax, declaredBytes, coding };
}

/**
 * Decompresses a body up to the limit. Synchronous, because zlib's threads cost two to four times the CPU time and the
 * limit bounds the duration (0.1 ms for a typical batch, 2.5 to 8 ms for 1 MiB).
 * @param onDecoded called with the decompressed size, or with its upper bound if decompression fails
 * @throws PublicError VALIDATION_ERROR if the body is too large, invalid, or followed by other bytes
 */
export function decodeBody(raw: Buffer, { coding, bytesMax }: BodyPlan, onDecoded?: (bytes: number) => void): Buffer {
  if (coding === null) return raw;
  onDecoded?.(decodedMax(raw, coding, bytesMax));
  try {
    const { buffer, engine } = coding.decode(raw, { maxOutputLength: bytesMax, info: true }) as Decoded;
    // Only gzip reports trailing data. Otherwise part of a batch would be lost although the caller gets a 200.
    if (engine.bytesWritten !== raw.length)
      throw new Error(`${raw.length - engine.bytesWritten} bytes follow the compressed data`);
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
    throw wrongHeader('content-encoding', 'The content encoding is not gzip, deflate, br or zstd.');
  return { name, ...coding };
}

function wrongHeader(header: string, message: string, cause?: unknown): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, details: { header }, cause });
}

export interface ReadBodyOptions {
  /** Time limit for the whole body. */
  bodyMaxMs?: number;
  /** Grows with the received bytes. Released by the caller. */
  reservation?: Reservation;
  /** Called with the number of bytes received so far. */
  onBytes?: (bytes: number) => void;
}

/** 1 MiB in 10 s is 0.8 Mbit/s. */
const BODY_MAX_MS = 10_000;
/**
 * Pace checks per time limit. From the second check on, a body must have grown by an eighth since the previous check.
 * Otherwise a caller could occupy a mebibyte by sending one byte per second.
 */
const PACE_CHECKS = 4;
const PACE_RATIO = 1 / 8;
const PACE_BYTES_MIN = 512;

const deadlines = new Deadlines();

/** @throws PublicError VALIDATION_ERROR, or INTERNAL_SERVER_ERROR if the body is too slow; ClientDisconnected */
export function readBody(request: IncomingMessage, plan: BodyPlan, options: ReadBodyOptions = {}): Promise<Buffer> {
  return readRaw(request, plan, { ...options, use: (chunks) => decodeBody(chunks.join(), plan) });
}

/** Maps promises to `never`. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;

export interface UseBodyOptions<T> extends ReadBodyOptions {
  /** Called before `use` with the decompressed size, or with its upper bound if decompression fails. */
  onDecoded?: (bytes: number) => void;
  /** Called with the whole body, whose memory is reused after `use` returns. */
  use(body: Buffer): Synchronous<T>;
}

/**
 * Like `readBody`, but without allocating a buffer for the body.
 * @returns the result of `use`
 * @throws the errors of `readBody` and `use`
 */
export function useBody<T>(request: IncomingMessage, plan: BodyPlan, options: UseBodyOptions<T>): Promise<T> {
  const use = (chunks: Chunks) => options.use(decodeBody(chunks.joinShared(), plan, options.onDecoded));
  return readRaw(request, plan, { ...options, use });
}

/** A buffer for joining the chunks of a body. As large as the largest body so far. */
let sharedBuffer = Buffer.alloc(0);

/** The size of one read by Node. */
const PAGE_BYTES_MAX = 64 * 1024;

/** The chunks of a body. Small chunks are copied into pages, so a body uses at most twice its size plus 2 KiB. */
class Chunks {
  bytes = 0;
  #buffers: Buffer[] = [];
  #page: Buffer | null = null;
  /** The range of the page that is not in `#buffers` yet. */
  #start = 0;
  #end = 0;

  add(chunk: Buffer): void {
    const usesChunk = chunk.length >= SMALL_BYTES || this.bytes === 0;
    this.bytes += chunk.length;
    if (usesChunk) {
      this.#flushPage();
      this.#buffers.push(chunk);
      return;
    }
    if (this.#page === null || this.#end + chunk.length > this.#page.length) {
      this.#flushPage();
      this.#page = Buffer.allocUnsafeSlow(Math.min(PAGE_BYTES_MAX, Math.max(2 * SMALL_BYTES, this.bytes)));
      this.#start = 0;
      this.#end = 0;
    }
    this.#end += chunk.copy(this.#page, this.#end);
  }

  join(): Buffer {
    this.#flushPage();
    return this.#buffers.length === 1 ? (this.#buffers[0] as Buffer) : Buffer.concat(this.#buffers);
  }

  /** Joins the chunks in memory that the next body reuses. */
  joinShared(): Buffer {
    this.#flushPage();
    if (this.#buffers.length === 1) return this.#buffers[0] as Buffer;
    if (sharedBuffer.length < this.bytes) sharedBuffer = Buffer.allocUnsafeSlow(this.bytes);
    let at = 0;
    for (const buffer of this.#buffers) at += buffer.copy(sharedBuffer, at);
    return sharedBuffer.subarray(0, this.bytes);
  }

  clear(): void {
    this.#buffers = [];
    this.#page = null;
    this.#start = 0;
    this.#end = 0;
  }

  #flushPage(): void {
    if (this.#page === null || this.#end === this.#start) return;
    this.#buffers.push(this.#page.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

type ReadRawOptions<T> = ReadBodyOptions & { use(chunks: Chunks): T };

function readRaw<T>(request: IncomingMessage, plan: BodyPlan, options: ReadRawOptions<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const toDisconnect = () => new ClientDisconnected('the caller disconnected');
    // The caller may have disconnected during the key check, and 'close' is emitted only once.
    if (request.destroyed || request.socket.destroyed) return reject(toDisconnect());
    const chunks = new Chunks();
    const { reservation } = options;
    const stop = () => {
      pace.cancel();
      if (reservation !== undefined) reservation.onEvicted = null;
      request.off('data', onData);
      request.off('end', onEnd);
      request.socket.off('close', onClose);
    };
    const fail = (error: Error) => {
      stop();
      // Frees the memory now, because discarding the rest of the body may take a while.
      chunks.clear();
      reject(error);
    };
    const use = () => {
      try {
        resolve(options.use(chunks));
      } catch (fault) {
        reject(fault);
      }
    };
    const onData = (chunk: Buffer) => {
      const bytes = chunks.bytes + chunk.length;
      options.onBytes?.(bytes);
      if (bytes > plan.rawBytesMax) return fail(tooLarge(plan.bytesMax));
      try {
        reservation?.grow(bytes);
      } catch (error) {
        return fail(error as Error);
      }
      chunks.add(chunk);
    };
    const onEnd = () => {
      stop();
      // A compressed body's real size must be charged before the next request is admitted.
      if (plan.coding === null) whenAllChunksRead(use);
      else use();
    };
    const onClose = () => fail(toDisconnect());
    const pace = watchPace(options.bodyMaxMs ?? BODY_MAX_MS, chunks, () => fail(createTooSlowError(chunks.bytes)));
    if (reservation !== undefined) reservation.onEvicted = fail;
    request.on('data', onData);
    request.on('end', onEnd);
    // A request that a half-close truncated never emits 'close'.
    request.socket.on('close', onClose);
  });
}

/** Calls `onSlow` if a body exceeds its time limit or arrives too slowly. */
function watchPace(bodyMaxMs: number, chunks: Chunks, onSlow: () => void) {
  let before = 0;
  let checks = 0;
  const wait = (): Deadline => deadlines.add(bodyMaxMs / PACE_CHECKS, check);
  const check = () => {
    const isTooSlow = ++checks > 1 && chunks.bytes - before < Math.max(PACE_BYTES_MIN, before * PACE_RATIO);
    if (checks === PACE_CHECKS || isTooSlow) return onSlow();
    before = chunks.bytes;
    deadline = wait();
  };
  let deadline = wait();
  return { cancel: () => deadline.cancel() };
}

/** Complete bodies that wait for the other bodies in the current turn of the event loop. */
let completeBodies: (() => void)[] = [];

/**
 * Uses all bodies from an event loop turn together, which keeps the CPU caches warm: 6 % more throughput for single
 * messages. All requests of the turn are admitted before the first body is used, so admission must reserve memory.
 */
function whenAllChunksRead(use: () => void) {
  completeBodies.push(use);
  if (completeBodies.length > 1) return;
  setImmediate(() => {
    const uses = completeBodies;
    completeBodies = [];
    for (const each of uses) each();
  });
}

function createTooSlowError(bytes: number): PublicError {
  return new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(`body too slow, ${bytes} bytes so far`) });
}
