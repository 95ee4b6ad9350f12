import type { Writable } from 'node:stream';
import type { LiveEvent } from './event.ts';
import type { Looker } from './looker.ts';

export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
/** Below the minute after which proxies cut a connection on which nothing comes. */
const HEARTBEAT_MS = 15_000;
/** A line that begins with a colon is a comment. */
const HEARTBEAT = ': still here\n\n';

/**
 * An event as it goes over the wire: one line of JSON, in which line breaks of any text are escaped, so that nothing that a
 * client has sent can begin an event or a field of its own.
 */
export function toEventText(event: LiveEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Texts of events that were made already: fifty lookers of one event share one text. */
const bytesOf = new WeakMap<LiveEvent, Buffer>();

function toEventBytes(event: LiveEvent): Buffer {
  const known = bytesOf.get(event);
  if (known !== undefined) return known;
  const bytes = Buffer.from(toEventText(event));
  if (event.kind === 'message' || event.kind === 'rejection') bytesOf.set(event, bytes);
  return bytes;
}

/**
 * Tells a looker's events until one of both ends: the looker, behind its last event, or the stream, be it that the reader has
 * gone or that the server drains. While the reader does not read, nothing is written, and the looker drops what is oldest.
 */
export async function tellEvents(looker: Looker, stream: Writable, heartbeatMs: number = HEARTBEAT_MS): Promise<void> {
  const isOver = () => stream.destroyed || stream.writableEnded;
  const end = () => looker.close();
  stream.once('close', end);
  // The reader has gone; nobody is left to be told.
  stream.on('error', end);
  try {
    while (!isOver()) {
      const event = await looker.next(heartbeatMs);
      if (event === null || isOver()) break;
      const isTaken = stream.write(event === 'nothing' ? HEARTBEAT : toEventBytes(event));
      if (!isTaken && !isOver()) await drained(stream);
    }
  } finally {
    looker.close();
    if (!isOver()) stream.end();
  }
}

/** Resolves when the stream takes more, or is over. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const names = ['drain', 'finish', 'close', 'error'];
    const done = () => {
      for (const name of names) stream.off(name, done);
      resolve();
    };
    for (const name of names) stream.on(name, done);
  });
}
