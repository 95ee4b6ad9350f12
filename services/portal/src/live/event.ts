import type { Writable } from 'node:stream';
import type { LiveEntry, MessageContent, Outcome } from './entry.ts';
import type { Subscriber } from './subscriber.ts';

/** What a looker is told, as JSON on one line. */
export type LiveEvent =
  | ({ readonly kind: 'message' } & ShownHead & Partial<ShownMessage>)
  | ({ readonly kind: 'rejection' } & ShownHead & NonNullable<LiveEntry['rejection']>)
  /** Of something that was shown; `fenced` takes away what it said. */
  | { readonly kind: 'fate'; readonly place: string; readonly fate: Outcome; readonly reason: string }
  | ({ readonly kind: 'status' } & LiveStatus)
  /** Nothing comes behind it. */
  | { readonly kind: 'end'; readonly reason: EndReason };

export type EndReason = 'not allowed any more' | 'permission unknown' | 'closed';

interface ShownHead extends Pick<LiveEntry, 'place' | 'fate' | 'receivedAt' | 'traceId' | 'reason'> {}

interface ShownMessage extends Omit<MessageContent, 'ownKeys' | 'anonymousKey'> {}

/** How much of what happens is shown: what is not, is said. */
export interface LiveStatus {
  /** False until it is known from where on the log is read; what is sent before that is not seen. */
  readonly isWatching: boolean;
  /** Records of the environment that were read since this looker came. */
  readonly seen: number;
  /** Those that were told; filters leave out others. */
  readonly shown: number;
  /** Those that the filter wanted and that were dropped, because the looker did not read in time or nothing could be told. */
  readonly lost: number;
  /** Share of the log that was read since this looker came: below 1 it was a sample. */
  readonly share: number;
  /** Why nothing is told now; '' while nothing is wrong. */
  readonly trouble: string;
}

/** What an entry was shown as, and what it was like then. */
interface Shown extends Pick<LiveEntry, 'fate' | 'reason' | 'message'> {
  readonly event: LiveEvent;
}

const shownOf = { raw: new WeakMap<LiveEntry, Shown>(), masked: new WeakMap<LiveEntry, Shown>() };

/**
 * The entry as it may be shown now: the same event for all who look at it, so that its text is made once.
 * @param masks whether the looker sees no raw ids
 */
export function toEntryEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const known = shownOf[masks ? 'masked' : 'raw'];
  const { fate, reason, message } = entry;
  const last = known.get(entry);
  if (last !== undefined && last.fate === fate && last.reason === reason && last.message === message) return last.event;
  const event = makeEvent(entry, masks);
  known.set(entry, { fate, reason, message, event });
  return event;
}

function makeEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const { place, fate, receivedAt, traceId, reason, message, rejection } = entry;
  if (rejection !== null) return { kind: 'rejection', place, fate, receivedAt, traceId, reason, ...rejection };
  // Of somebody who is erased nothing is told but that it came: not the trace either, which leads to log lines.
  if (message === null) return { kind: 'message', place, fate, receivedAt, traceId: '', reason: '' };
  const { ownKeys: _own, anonymousKey: _anonymous, ...shown } = message;
  const head = { kind: 'message', place, fate, receivedAt, traceId, reason } as const;
  return { ...head, ...(masks ? toMasked(shown) : shown) };
}

/** Properties, traits and pages are texts in which anybody may be named: analysts' views leave them out as well. */
function toMasked(shown: ShownMessage): ShownMessage {
  const ids = Object.entries(shown.ids).map(([name, id]) => [name, name.endsWith('Id') ? toMask(id) : id]);
  return { ...shown, ids: Object.fromEntries(ids), pageUrl: '', properties: '', traits: '', isCut: false };
}

const SHOWN_CHARACTERS = 2;

/** The first two characters; none of an id that has no more. */
export function toMask(id: string): string {
  const characters = [...id];
  return characters.length > SHOWN_CHARACTERS ? `${characters.slice(0, SHOWN_CHARACTERS).join('')}…` : '…';
}

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
export async function sendEvents(
  looker: Subscriber,
  stream: Writable,
  heartbeatMs: number = HEARTBEAT_MS,
): Promise<void> {
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
