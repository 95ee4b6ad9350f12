import type { IncomingMessage } from 'node:http';
import { PublicError } from '@playline/errors';
import type { Reservation } from './bytes-in-flight.ts';
import { type BodyPlan, decodeBody, tooLarge } from './content.ts';
import { type Deadline, Deadlines } from './deadlines.ts';
import { ClientGone } from './exchange.ts';
import { SMALL_BYTES } from './node-server.ts';

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
type AtOnce<T> = T extends PromiseLike<unknown> ? never : T;

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
  use(body: Buffer): AtOnce<T>;
}

/**
 * Reads a body like `readBody`, for a caller that needs the bytes only at once. A large body then needs no buffer of
 * its own, which would double the memory and the work of garbage collection.
 * @returns what `use` returns
 * @throws what `readBody` throws, and what `use` throws
 */
export function useBody<T>(request: IncomingMessage, plan: BodyPlan, options: UseBodyOptions<T>): Promise<T> {
  const use = (chunks: Chunks) => options.use(decodeBody(chunks.joinInPlace(), plan, options.onDecoded));
  return readRaw(request, plan, { ...options, use });
}

/** Bodies of several chunks are put together here, one after the other. It is as large as the largest one so far. */
let place = Buffer.alloc(0);

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
  joinInPlace(): Buffer {
    this.#listPage();
    if (this.#buffers.length === 1) return this.#buffers[0] as Buffer;
    if (place.length < this.bytes) place = Buffer.allocUnsafeSlow(this.bytes);
    let at = 0;
    for (const buffer of this.#buffers) at += buffer.copy(place, at);
    return place.subarray(0, this.bytes);
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
    const gone = () => new ClientGone('the caller hung up');
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
      if (plan.coding === null) whenAllAreRead(use);
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
function whenAllAreRead(use: () => void) {
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
