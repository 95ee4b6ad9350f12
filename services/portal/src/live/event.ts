/** Live events, and the stream that sends them as server-sent events. */
import type { Writable } from 'node:stream';
import { explainRejection } from '../explain-rejection.ts';
import { maskId } from '../reads/query-view.ts';
import type { LiveEntry, MessageContent } from './entry.ts';
import type { Subscriber } from './subscriber.ts';

export type LiveEvent =
  | ({ readonly kind: 'message' } & EventHeader & Partial<VisibleMessage>)
  | ({ readonly kind: 'rejection' } & EventHeader &
      NonNullable<LiveEntry['rejection']> &
      ReturnType<typeof explainRejection>)
  | ({ readonly kind: 'outcome' } & Pick<LiveEntry, 'position' | 'outcome' | 'reason' | 'storedAt'>)
  | ({ readonly kind: 'status' } & LiveStatus)
  | { readonly kind: 'end'; readonly reason: EndReason };

export type EndReason = 'access revoked' | 'access check failed' | 'closed';

interface EventHeader
  extends Pick<LiveEntry, 'position' | 'outcome' | 'receivedAt' | 'storedAt' | 'traceId' | 'reason'> {}
/** `identityKey` is the key of the person that the message is about; empty if ids are masked. */
interface VisibleMessage extends Omit<MessageContent, 'subjectKeys' | 'anonymousKey'> {
  readonly identityKey: string;
}

/** All counts start at 0 when the subscription starts. */
export interface LiveStatus {
  /** False until the start offsets are known. Messages before these offsets are not read. */
  readonly isWatching: boolean;
  readonly seen: number;
  readonly shown: number;
  /** Matching messages that were dropped because the client was too slow or the fences were unavailable. */
  readonly lost: number;
  /** Fraction of the records that was read; less than 1 if records were sampled. */
  readonly share: number;
  readonly trouble: string;
}

/** An event, and the state of the entry when the event was created. */
interface CachedEvent extends Pick<LiveEntry, 'outcome' | 'reason' | 'message'> {
  readonly event: LiveEvent;
}

const eventCaches = { raw: new WeakMap<LiveEntry, CachedEvent>(), masked: new WeakMap<LiveEntry, CachedEvent>() };

/** Returns the event for the current state of an entry. Subscribers share events, so each event is serialized once. */
export function toEntryEvent(entry: LiveEntry, shouldMask: boolean): LiveEvent {
  const cache = eventCaches[shouldMask ? 'masked' : 'raw'];
  const { outcome, reason, message } = entry;
  const cached = cache.get(entry);
  if (cached !== undefined && cached.outcome === outcome && cached.reason === reason && cached.message === message)
    return cached.event;
  const event = createEvent(entry, shouldMask);
  cache.set(entry, { outcome, reason, message, event });
  return event;
}

function createEvent(entry: LiveEntry, shouldMask: boolean): LiveEvent {
  const { position, outcome, receivedAt, storedAt, traceId, reason, message, rejection } = entry;
  const header = { position, outcome, receivedAt, storedAt, traceId, reason };
  if (rejection !== null) return { kind: 'rejection', ...header, ...rejection, ...explainRejection(rejection) };
  // Omits the trace id of a message from an erased person, because log lines may contain the id.
  if (message === null)
    return { kind: 'message', position, outcome, receivedAt, storedAt: null, traceId: '', reason: '' };
  const { subjectKeys, anonymousKey, ...content } = message;
  const visible = { ...content, identityKey: subjectKeys[0] ?? anonymousKey };
  return { kind: 'message', ...header, ...(shouldMask ? toMasked(visible) : visible) };
}

/** Removes properties, traits and page URLs, which can identify people. */
function toMasked(message: VisibleMessage): VisibleMessage {
  const ids = Object.entries(message.ids).map(([name, id]) => [name, name.endsWith('Id') ? toMask(id) : id]);
  return {
    ...message,
    ids: Object.fromEntries(ids),
    pageUrl: '',
    properties: '',
    traits: '',
    isCut: false,
    identityKey: '',
  };
}

/** Masks an id. Hides the id completely if it is so short that masking would reveal it. */
const toMask = (id: string) => (maskId(id) === `${id}…` ? '…' : maskId(id));

export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
/** Proxies often close connections that are idle for a minute. */
const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': heartbeat\n\n';

/** JSON escapes line breaks, so client data cannot inject server-sent events. */
export function toEventText(event: LiveEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

const bytesCache = new WeakMap<LiveEvent, Buffer>();

function toEventBytes(event: LiveEvent): Buffer {
  const cached = bytesCache.get(event);
  if (cached !== undefined) return cached;
  const bytes = Buffer.from(toEventText(event));
  if (event.kind === 'message' || event.kind === 'rejection') bytesCache.set(event, bytes);
  return bytes;
}

/**
 * Sends events until the subscriber or the stream ends. If the client stops reading, the subscriber queues events and
 * drops the oldest.
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
      const canContinue = stream.write(event === 'timeout' ? HEARTBEAT : toEventBytes(event));
      if (!canContinue && !isOver()) await waitForDrain(stream);
    }
  } finally {
    subscriber.close();
    if (!isOver()) stream.end();
  }
}

function waitForDrain(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const names = ['drain', 'finish', 'close', 'error'];
    const done = () => {
      for (const name of names) stream.off(name, done);
      resolve();
    };
    for (const name of names) stream.on(name, done);
  });
}
