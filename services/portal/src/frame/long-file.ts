import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { HeaderList } from '@playline/http';
import type { Visit } from './page.ts';

export interface LongFile {
  readonly type: string;
  readonly pieces: AsyncIterable<string>;
}

/** Whoever takes nothing for so long has gone, or holds a place for nothing. */
const STALL_MAX_MS = 30_000;

/**
 * Sends a file piece by piece, no faster than it is taken: one piece is held at a time. The first is made in front of the
 * answer, so that what cannot be read at all is told by a page.
 * @throws what the first piece throws; of a later one the connection ends, which browsers show as a failed download
 */
export async function sendLongFile(visit: Visit, { type, pieces }: LongFile, headers: HeaderList): Promise<void> {
  const { exchange } = visit;
  const source = pieces[Symbol.asyncIterator]();
  let piece = await source.next();
  const stream = exchange.openStream(type, headers, { isFile: true });
  // Otherwise the query stays open, and its place in the share of the project is lost.
  if (stream === null) return void (await source.return?.());
  try {
    for (; piece.done !== true && exchange.request.method !== 'HEAD'; piece = await source.next()) {
      if (!stream.write(piece.value)) await drained(stream, visit.signal);
    }
    stream.end();
  } catch (fault) {
    stream.destroy();
    throw fault;
  } finally {
    await source.return?.();
  }
}

async function drained(stream: Writable, signal: AbortSignal): Promise<void> {
  await once(stream, 'drain', { signal: AbortSignal.any([signal, AbortSignal.timeout(STALL_MAX_MS)]) });
}
