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
  readonly hasSignature: (raw: Buffer) => boolean;
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
const deflate = { decode: decodeDeflate, hasSignature: () => true, expansionMax: DEFLATE_EXPANSION_MAX };
/** RFC 1952, 2.3.1. */
const isGzip = ([first, second]: Buffer) => first === 0x1f && second === 0x8b;
const gzip = { decode: gunzipSync, hasSignature: isGzip, expansionMax: DEFLATE_EXPANSION_MAX };
const brotli = { decode: brotliDecompressSync, hasSignature: () => true, expansionMax: Number.POSITIVE_INFINITY };
/** A frame, or one that is skipped: RFC 8878, 3.1. */
const isZstd = (raw: Buffer) =>
  raw.length >= 4 && (raw.readUInt32LE() === 0xfd2fb528 || raw.readUInt32LE() >>> 4 === 0x184d2a5);
const zstd = {
  decode: (bytes: Uint8Array, options: DecodeOptions) => zstdDecompressSync(bytes, { ...zstdOptions, ...options }),
  hasSignature: isZstd,
  expansionMax: Number.POSITIVE_INFINITY,
};

const CODINGS: Readonly<Record<string, Omit<Coding, 'name'>>> = { gzip, 'x-gzip': gzip, deflate, br: brotli, zstd };

/** The most bytes that can have been made before decompression failed: zlib does not say how many. */
function decodedMax(raw: Buffer, { hasSignature: begins, expansionMax }: Coding, bytesMax: number): number {
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

export interface ReadBodyOptions {
  /** Most time for the whole body. */
  bodyMaxMs?: number;
  /** Grows with the bytes that arrive. Its owner releases it, also when reading fails. */
  reservation?: Reservation;
  /** Called with the number of bytes so far, before they are kept. */
  onBytes?: (bytes: number) => void;
}

/** 1 MiB in this time is 0.8 Mbit/s. A slower caller would hold memory for longer than its batch is worth. */
const BODY_MAX_MS = 10_000;
/**
 * The pace is checked after each quarter of that time. From the second on, a quarter must bring as much as a caller with
 * any steady pace sends in the slowest case, and some more than a packet that keeps the connection open: an eighth of
 * what came before it. Else a caller could send a mebibyte at once, and keep it in memory by one byte a second.
 */
const PACE_CHECKS = 4;
const PACE_SHARE = 1 / 8;
const PACE_BYTES_MIN = 512;

const deadlines = new Deadlines();

/**
 * Reads a body as planned and decompresses it, within the plan's limits.
 * @throws PublicError VALIDATION_ERROR (too large, broken encoding), INTERNAL_SERVER_ERROR (too slow: it may be the
 *   network, and callers drop a batch on a 4xx); ClientGone when the caller hangs up
 */
export function readBody(request: IncomingMessage, plan: BodyPlan, options: ReadBodyOptions = {}): Promise<Buffer> {
  return readRaw(request, plan, { ...options, use: (chunks) => decodeBody(chunks.join(), plan) });
}

/** A value that is there when the function returns, so no promise. */
type Synchronous<T> = T extends PromiseLike<unknown> ? never : T;

export interface UseBodyOptions<T> extends ReadBodyOptions {
  /**
   * Called with the number of decompressed bytes before `use`. Also called when decompression failed, with the most
   * bytes it can have made.
   */
  onDecoded?: (bytes: number) => void;
  /**
   * Called once with the whole body. Its bytes are valid only until this returns: then other bodies use the same
   * memory. So it must not be async.
   */
  use(body: Buffer): Synchronous<T>;
}

/**
 * Reads a body like `readBody`, for a caller that needs the bytes only at once. A large body then needs no buffer of
 * its own, which would double the memory and the work of garbage collection.
 * @returns what `use` returns
 * @throws what `readBody` throws, and what `use` throws
 */
export function useBody<T>(request: IncomingMessage, plan: BodyPlan, options: UseBodyOptions<T>): Promise<T> {
  const use = (chunks: Chunks) => options.use(decodeBody(chunks.joinShared(), plan, options.onDecoded));
  return readRaw(request, plan, { ...options, use });
}

/** Bodies of several chunks are put together here, one after the other. It is as large as the largest one so far. */
let sharedBuffer = Buffer.alloc(0);

/** Most bytes of a page: as much as Node reads at a time. */
const PAGE_BYTES_MAX = 64 * 1024;

/**
 * The chunks of a body. Small ones are copied into pages as large as what came before them, so a body takes at most
 * twice its bytes (and 2 KiB), however it is cut. The first chunk is kept as it is: most bodies have only that one.
 */
class Chunks {
  bytes = 0;
  #buffers: Buffer[] = [];
  #page: Buffer | null = null;
  /** Where those chunks of the page begin that are not in the list yet, and where they end. */
  #start = 0;
  #end = 0;

  add(chunk: Buffer): void {
    const isKept = chunk.length >= SMALL_BYTES || this.bytes === 0;
    this.bytes += chunk.length;
    if (isKept) {
      this.#listPage();
      this.#buffers.push(chunk);
      return;
    }
    if (this.#page === null || this.#end + chunk.length > this.#page.length) {
      this.#listPage();
      this.#page = Buffer.allocUnsafeSlow(Math.min(PAGE_BYTES_MAX, Math.max(2 * SMALL_BYTES, this.bytes)));
      this.#start = 0;
      this.#end = 0;
    }
    this.#end += chunk.copy(this.#page, this.#end);
  }

  /** The whole body in memory of its own. */
  join(): Buffer {
    this.#listPage();
    return this.#buffers.length === 1 ? (this.#buffers[0] as Buffer) : Buffer.concat(this.#buffers);
  }

  /** The whole body, in memory that the next body uses too. */
  joinShared(): Buffer {
    this.#listPage();
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

  #listPage(): void {
    if (this.#page === null || this.#end === this.#start) return;
    this.#buffers.push(this.#page.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

interface ReadRawOptions<T> extends ReadBodyOptions {
  use(chunks: Chunks): T;
}

function readRaw<T>(request: IncomingMessage, plan: BodyPlan, options: ReadRawOptions<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = () => new ClientDisconnected('the caller hung up');
    // The caller may have hung up while its key was looked up, and 'close' is not emitted twice.
    if (request.destroyed || request.socket.destroyed) return reject(gone());
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
      // The rest of the body may take a while. What has come of it need not stay in memory.
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
      // The decompressed size must be known and charged before the next request is admitted.
      if (plan.coding === null) whenAllChunksRead(use);
      else use();
    };
    const onClose = () => fail(gone());
    const pace = new Pace(options.bodyMaxMs ?? BODY_MAX_MS, chunks, () => fail(tooSlow(chunks.bytes)));
    if (reservation !== undefined) reservation.onEvicted = fail;
    request.on('data', onData);
    request.on('end', onEnd);
    // Of the connection: a request that was cut off by a half-close and then answered never emits 'close'.
    request.socket.on('close', onClose);
  });
}

/** Watches one body, and calls back once it has taken too long or has come too slowly. */
class Pace {
  readonly #checkAfterMs: number;
  readonly #chunks: Chunks;
  readonly #onSlow: () => void;
  #before = 0;
  #checks = 0;
  #deadline: Deadline;

  constructor(bodyMaxMs: number, chunks: Chunks, onSlow: () => void) {
    this.#checkAfterMs = bodyMaxMs / PACE_CHECKS;
    this.#chunks = chunks;
    this.#onSlow = onSlow;
    this.#deadline = this.#wait();
  }

  cancel(): void {
    this.#deadline.cancel();
  }

  #wait(): Deadline {
    return deadlines.add(this.#checkAfterMs, () => this.#check());
  }

  #check(): void {
    this.#checks++;
    const { bytes } = this.#chunks;
    const least = Math.max(PACE_BYTES_MIN, this.#before * PACE_SHARE);
    const isTooSlow = this.#checks > 1 && bytes - this.#before < least;
    if (this.#checks === PACE_CHECKS || isTooSlow) this.#onSlow();
    else {
      this.#before = bytes;
      this.#deadline = this.#wait();
    }
  }
}

/** Bodies that wait for the others of this turn of the event loop. */
let whole: (() => void)[] = [];

/**
 * Uses the bodies of one turn of the event loop one after the other, once all of them are read: what reads messages then
 * stays in the processor's caches, which the kernel and the parser of HTTP would take from it between any two. Measured
 * on the gateway at batches of 1 from 64 connections: 1.06 times the events per CPU-second.
 *
 * So the requests of one turn, which may all have come in one packet, are let in before the first of them is read:
 * whoever limits them charges something as it lets them in.
 */
function whenAllChunksRead(use: () => void) {
  whole.push(use);
  if (whole.length > 1) return;
  setImmediate(() => {
    const uses = whole;
    whole = [];
    for (const each of uses) each();
  });
}

function tooSlow(bytes: number): PublicError {
  return new PublicError('INTERNAL_SERVER_ERROR', { cause: new Error(`body too slow, ${bytes} bytes so far`) });
}
