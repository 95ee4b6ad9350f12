/** Events of Live as JSON, and their server-sent event stream. */
import type { Writable } from 'node:stream';
import { maskId } from '../reads/query-view.ts';
import type { LiveEntry, MessageContent, Outcome } from './entry.ts';
import type { Subscriber } from './subscriber.ts';

export type LiveEvent =
  | ({ readonly kind: 'message' } & ShownHead & Partial<ShownMessage>)
  | ({ readonly kind: 'rejection' } & ShownHead & NonNullable<LiveEntry['rejection']>)
  /** Of an entry that was shown; `fenced` removes its content. */
  | { readonly kind: 'outcome'; readonly position: string; readonly outcome: Outcome; readonly reason: string }
  | ({ readonly kind: 'status' } & LiveStatus)
  /** The last event. */
  | { readonly kind: 'end'; readonly reason: EndReason };

export type EndReason = 'not allowed any more' | 'permission unknown' | 'closed';

interface ShownHead extends Pick<LiveEntry, 'position' | 'outcome' | 'receivedAt' | 'traceId' | 'reason'> {}
interface ShownMessage extends Omit<MessageContent, 'ownKeys' | 'anonymousKey'> {}

/** Counts begin with the subscription. */
export interface LiveStatus {
  /** False until the start of the log to read is known; earlier messages are not seen. */
  readonly isWatching: boolean;
  readonly seen: number;
  readonly shown: number;
  /** Matched the filter and were dropped: the client was too slow, or showing them was not allowed. */
  readonly lost: number;
  /** Share of the log that was read; below 1 it was a sample. */
  readonly share: number;
  /** Why nothing is shown; '' otherwise. */
  readonly trouble: string;
}

/** The event of an entry, and the state of the entry when it was made. */
interface Shown extends Pick<LiveEntry, 'outcome' | 'reason' | 'message'> {
  readonly event: LiveEvent;
}

const shownOf = { raw: new WeakMap<LiveEntry, Shown>(), masked: new WeakMap<LiveEntry, Shown>() };

/** The current event of an entry, shared by all subscribers, so that its text is made once. */
export function toEntryEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const known = shownOf[masks ? 'masked' : 'raw'];
  const { outcome, reason, message } = entry;
  const last = known.get(entry);
  if (last !== undefined && last.outcome === outcome && last.reason === reason && last.message === message)
    return last.event;
  const event = makeEvent(entry, masks);
  known.set(entry, { outcome, reason, message, event });
  return event;
}

function makeEvent(entry: LiveEntry, masks: boolean): LiveEvent {
  const { position, outcome, receivedAt, traceId, reason, message, rejection } = entry;
  const head = { position, outcome, receivedAt, traceId, reason };
  if (rejection !== null) return { kind: 'rejection', ...head, ...rejection };
  // Of an erased person only the arrival is shown; a trace would lead to log lines.
  if (message === null) return { kind: 'message', position, outcome, receivedAt, traceId: '', reason: '' };
  const { ownKeys: _own, anonymousKey: _anonymous, ...shown } = message;
  return { kind: 'message', ...head, ...(masks ? toMasked(shown) : shown) };
}

/** Properties, traits and pages may name anyone, so they are left out. */
function toMasked(shown: ShownMessage): ShownMessage {
  const ids = Object.entries(shown.ids).map(([name, id]) => [name, name.endsWith('Id') ? toMask(id) : id]);
  return { ...shown, ids: Object.fromEntries(ids), pageUrl: '', properties: '', traits: '', isCut: false };
}

/** Nothing of an id that a mask would show as a whole. */
const toMask = (id: string) => (maskId(id) === `${id}…` ? '…' : maskId(id));

export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
/** Below the minute after which proxies close an idle connection. */
const HEARTBEAT_MS = 15_000;
/** A line that begins with a colon is a comment. */
const HEARTBEAT = ': still here\n\n';

/** One line of JSON, which escapes line breaks, so that no text of a client can begin an event. */
export function toEventText(event: LiveEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

const bytesOf = new WeakMap<LiveEvent, Buffer>();

function toEventBytes(event: LiveEvent): Buffer {
  const known = bytesOf.get(event);
  if (known !== undefined) return known;
  const bytes = Buffer.from(toEventText(event));
  if (event.kind === 'message' || event.kind === 'rejection') bytesOf.set(event, bytes);
  return bytes;
}

/**
 * Sends events until the subscriber or the stream ends. While the client does not read, nothing is written, and the
 * subscriber drops its oldest events.
 */
export async function sendEvents(
  subscriber: Subscriber,
  stream: Writable,
  heartbeatMs: number = HEARTBEAT_MS,
): Promise<void> {
  const isOver = () => stream.destroyed || stream.writableEnded;
  const end = () => subscriber.close();
  stream.once('close', end);
  stream.on('error', end);
  try {
    while (!isOver()) {
      const event = await subscriber.next(heartbeatMs);
      if (event === null || isOver()) break;
      const isTaken = stream.write(event === 'nothing' ? HEARTBEAT : toEventBytes(event));
      if (!isTaken && !isOver()) await drained(stream);
    }
  } finally {
    subscriber.close();
    if (!isOver()) stream.end();
  }
}

/** Resolves when the stream accepts more or has ended. */
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
