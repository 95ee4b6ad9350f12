import type { IncomingMessage } from 'node:http';
import { PublicError } from '@playline/errors';
import { type BodyPlan, decodeBody, tooLarge } from './content.ts';
import { Deadlines } from './deadlines.ts';
import { ClientGone } from './exchange.ts';

export interface ReadBodyOptions {
  /** Most time for the whole body. */
  bodyMaxMs?: number;
  /** Called with the number of bytes so far, before they are kept. If it throws, reading ends with that error. */
  onBytes?: (bytes: number) => void;
}

/** 1 MiB in this time is 0.8 Mbit/s. A slower caller would hold memory for longer than its batch is worth. */
const BODY_MAX_MS = 10_000;

const deadlines = new Deadlines();

/**
 * Reads a body as planned and decompresses it, within the plan's limits.
 * @throws PublicError VALIDATION_ERROR (too large, broken encoding), INTERNAL_SERVER_ERROR (too slow: it may be the
 *   network, and callers drop a batch on a 4xx); ClientGone when the caller hangs up
 */
export function readBody(request: IncomingMessage, plan: BodyPlan, options: ReadBodyOptions = {}): Promise<Buffer> {
  return readRaw(request, plan, { ...options, use: (chunks) => decodeBody(join(chunks), plan) });
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
  const use = (chunks: readonly Buffer[], bytes: number) =>
    options.use(decodeBody(joinInPlace(chunks, bytes), plan, options.onDecoded));
  return readRaw(request, plan, { ...options, use });
}

const join = (chunks: readonly Buffer[]) => (chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));

/** Bodies of several chunks are put together here, one after the other. It is as large as the largest one so far. */
let place = Buffer.alloc(0);

function joinInPlace(chunks: readonly Buffer[], bytes: number): Buffer {
  if (chunks.length === 1) return chunks[0] as Buffer;
  if (place.length < bytes) place = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(place, at);
  return place.subarray(0, bytes);
}

interface ReadRawOptions<T> extends ReadBodyOptions {
  use(chunks: readonly Buffer[], bytes: number): T;
}

function readRaw<T>(request: IncomingMessage, plan: BodyPlan, options: ReadRawOptions<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = () => new ClientGone('the caller hung up');
    // The caller may have hung up while its key was looked up, and 'close' is not emitted twice.
    if (request.destroyed || request.socket.destroyed) return reject(gone());
    const chunks: Buffer[] = [];
    let bytes = 0;
    const stop = () => {
      deadline.cancel();
      request.off('data', onData);
      request.off('end', onEnd);
      request.socket.off('close', onClose);
    };
    const fail = (error: Error) => {
      stop();
      // The rest of the body may take a while. What has come of it need not stay in memory.
      chunks.length = 0;
      reject(error);
    };
    const use = () => {
      try {
        resolve(options.use(chunks, bytes));
      } catch (fault) {
        reject(fault);
      }
    };
    const onData = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > plan.rawBytesMax) return fail(tooLarge(plan.bytesMax));
      try {
        options.onBytes?.(bytes);
      } catch (error) {
        return fail(error as Error);
      }
      chunks.push(chunk);
    };
    const onEnd = () => {
      stop();
      // The decompressed size must be known and charged before the next request is admitted.
      if (plan.coding === null) whenAllAreRead(use);
      else use();
    };
    const onClose = () => fail(gone());
    const deadline = deadlines.add(options.bodyMaxMs ?? BODY_MAX_MS, () => fail(tooSlow(bytes)));
    request.on('data', onData);
    request.on('end', onEnd);
    // Of the connection: a request that was cut off by a half-close and then answered never emits 'close'.
    request.socket.on('close', onClose);
  });
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
