import { createContext } from './context.ts';
import { host } from './host.ts';
import {
  BATCH_MESSAGES_MAX,
  type ConsentLevel,
  createMessageId,
  type EventContext,
  MESSAGE_BYTES_MAX,
  type Message,
  type MessageType,
} from './message.ts';
import type { AudienceClient, AudienceClientOptions, DroppedMessages } from './options.ts';
import { createPost } from './post.ts';
import { byteLength, createQueue, type Queue } from './queue.ts';
import { openSender, type Sender } from './sender.ts';
import { attempt, createShelf } from './shelf.ts';
import { type AudienceStore, createBrowserStore } from './store.ts';

/** The version in package.json. */
export const LIBRARY_VERSION = '0.1.0';
const KEY_PREFIX = 'audience:';
/** Without the publishable key: a person stays the same when the key is refreshed. */
const ANONYMOUS_ID_KEY: string = `${KEY_PREFIX}anonymousId`;

interface Client {
  readonly options: AudienceClientOptions;
  readonly store: AudienceStore;
  readonly queue: Queue;
  readonly sender: Sender;
  readonly readContext: () => EventContext;
  readonly onDropped: (dropped: DroppedMessages) => void;
  /** Ends requests under way. */
  readonly abort: () => void;
  consent: ConsentLevel;
  anonymousId: string;
  user: Pick<Message, 'userId' | 'identityType'>;
  closed: boolean;
}

/**
 * Opens a client: a bounded queue, also in the store, that is sent in batches. No method throws or holds up its caller.
 * What becomes of a message: README, "Delivery".
 */
export function openAudienceClient(options: AudienceClientOptions): AudienceClient {
  const client = openParts(options);
  // Without consent the store is left alone: what an earlier page was allowed to keep waits for this one's answer.
  if (client.consent !== 'none') setConsent(client, client.consent);
  const unlisten = listen(client.sender);
  return {
    track: (eventName, properties) => enqueue(client, 'track', { eventName, properties }),
    page: (properties) => enqueue(client, 'page', { properties }),
    screen: (eventName, properties) => enqueue(client, 'screen', { eventName, properties }),
    identify: (userId, { identityType, traits } = {}) => {
      if (client.consent !== 'full') return null;
      client.user = { userId, identityType };
      return enqueue(client, 'identify', { traits });
    },
    alias: (link) => (client.consent === 'full' ? enqueue(client, 'alias', { ...link }) : null),
    setConsent: (level) => setConsent(client, level),
    reset: () => {
      client.user = {};
      client.anonymousId = createMessageId();
      keepAnonymousId(client);
    },
    flush: () => client.sender.flush(),
    close: () => {
      client.closed = true;
      unlisten();
      return client.sender.close();
    },
    get anonymousId() {
      return client.anonymousId;
    },
  };
}

function openParts(options: AudienceClientOptions): Client {
  const { baseUrl, publishableKey, headerPrefix = 'x-service', store = createBrowserStore() } = options;
  const { onRejected, onDropped } = options;
  const report = { onRejected: createReport(onRejected), onDropped: createReport(onDropped) };
  const queue = createQueue({
    shelf: createShelf(store, `${KEY_PREFIX}message:${publishableKey}:`),
    messagesMax: options.queueMessagesMax ?? 1000,
    bytesMax: options.queueBytesMax ?? 1024 * 1024,
    onDropped: report.onDropped,
  });
  const post = createPost({
    url: `${baseUrl.replace(/\/+$/, '')}/v1/audience/messages`,
    headers: { 'content-type': 'application/json', [`${headerPrefix}-publishable-key`]: publishableKey },
    // Looked up at each call: pages replace it, and it refuses to be called as a method of anything else.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    compress: options.compress ?? true,
  });
  const sender = openSender({
    ...{ queue, post, ...report },
    flushIntervalMs: options.flushIntervalMs ?? 5000,
    batchMessagesMax: Math.min(options.batchMessagesMax ?? BATCH_MESSAGES_MAX, BATCH_MESSAGES_MAX),
  });
  const { library = 'playline-audience-client', libraryVersion = LIBRARY_VERSION, context } = options;
  return {
    ...{ options, store, queue, sender, user: {}, closed: false },
    readContext: createContext({ library, libraryVersion }, context),
    onDropped: report.onDropped,
    abort: post.abort,
    consent: options.consent ?? 'none',
    anonymousId: attempt(() => store.get(ANONYMOUS_ID_KEY), null) ?? createMessageId(),
  };
}

/** A listener of the caller's that throws must not stop the delivery. */
function createReport<T>(listener: ((report: T) => void) | undefined): (report: T) => void {
  return (report) => {
    try {
      listener?.(report);
    } catch (error) {
      console.error(error);
    }
  };
}

function enqueue(client: Client, type: MessageType, fields: Partial<Message>): string | null {
  const { consent, options, anonymousId, queue, sender } = client;
  if (consent === 'none') return null;
  const messageId = createMessageId();
  const drop = (reason: DroppedMessages['reason']) => {
    client.onDropped({ messageIds: [messageId], reason });
    return null;
  };
  if (client.closed) return drop('closed');
  const { surface, deviceId, sessionId, test } = options;
  const text = attempt(() => {
    const message: Message = {
      ...{ type, messageId, eventTimestamp: new Date().toISOString(), anonymousId, deviceId, sessionId },
      // An alias names its ids itself.
      ...(type !== 'alias' && client.user),
      ...fields,
      ...{ surface, consentLevel: consent, test, context: client.readContext() },
    };
    return JSON.stringify(message);
  }, '');
  if (text === '') return drop('unserialisable');
  if (byteLength(text) > MESSAGE_BYTES_MAX) return drop('too_large');
  queue.add(messageId, text);
  sender.onQueued();
  return messageId;
}

function setConsent(client: Client, level: ConsentLevel): void {
  const { queue, sender } = client;
  client.consent = level;
  if (level !== 'full') {
    client.user = {};
    // A batch that is still being compressed has not left yet.
    client.abort();
  }
  // Also what other tabs and earlier pages left there.
  queue.load();
  if (level === 'none') queue.rewrite(() => null);
  if (level === 'anonymous') queue.rewrite(withoutUser);
  keepAnonymousId(client);
  sender.onQueued();
}

function withoutUser(message: Message): Message | null {
  if (message.type === 'identify' || message.type === 'alias') return null;
  return { ...message, userId: undefined, identityType: undefined, consentLevel: 'anonymous' };
}

function keepAnonymousId({ store, consent, anonymousId }: Client): void {
  attempt(
    () => (consent === 'none' ? store.remove(ANONYMOUS_ID_KEY) : store.set(ANONYMOUS_ID_KEY, anonymousId)),
    undefined,
  );
}

/** Gives what takes the listeners away again. */
function listen(sender: Sender): () => void {
  const { document } = host;
  const onVisibility = () => {
    if (document?.visibilityState === 'hidden') sender.leave();
  };
  const { leave, resume } = sender;
  // Phones end a hidden page without a word, so hidden counts as closed; older browsers tell of a close by pagehide alone.
  document?.addEventListener?.('visibilitychange', onVisibility);
  if (document) host.addEventListener?.('pagehide', leave);
  if (document) host.addEventListener?.('online', resume);
  return () => {
    document?.removeEventListener?.('visibilitychange', onVisibility);
    host.removeEventListener?.('pagehide', leave);
    host.removeEventListener?.('online', resume);
  };
}
