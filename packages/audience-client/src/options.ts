import type { ConsentLevel, EventContext, IdentityType, MessageRejection, Properties, Surface } from './message.ts';
import type { Fetch } from './post.ts';
import type { AudienceStore } from './store.ts';

/** Messages that the service will never have from this client. */
export interface DroppedMessages {
  messageIds: string[];
  /**
   * `refused`: the service answered 4xx. `queue_full`: the oldest made room. `too_large`: over 32 KiB. `unserialisable`:
   * JSON cannot say it. `expired`: stored for longer than the service accepts. `consent`: withdrawn. `closed`: too late.
   * `invalid`: a name or an id that the service would reject; `message` says which.
   */
  reason: 'refused' | 'queue_full' | 'too_large' | 'unserialisable' | 'expired' | 'consent' | 'closed' | 'invalid';
  /** Of the answer, when refused; `code` and `message` are the error envelope's. */
  status?: number;
  code?: string;
  message?: string;
}

export interface AudienceClientOptions {
  /** Address of the service, without `/v1/…`. */
  baseUrl: string;
  /** Public by design: it can write messages and consent, and read nothing else. */
  publishableKey: string;
  surface?: Surface;
  /** What the person has agreed to; `none` until `setConsent` says otherwise. */
  consent?: ConsentLevel;
  /** Longest time that a message waits for others (5,000). */
  flushIntervalMs?: number;
  /** A batch is sent when it has this many (100, the contract's limit, at most) or 60 KiB. */
  batchMessagesMax?: number;
  /** Unsent messages that are kept (1,000); the oldest goes first. */
  queueMessagesMax?: number;
  /** Bytes of them (1 MiB: a page has 5 MB of storage for everything). */
  queueBytesMax?: number;
  /** After this a request without an answer is sent again (30,000). */
  requestTimeoutMs?: number;
  /** `context.library` and `context.libraryVersion`: what posts, when it is not this library itself. */
  library?: string;
  libraryVersion?: string;
  deviceId?: string;
  sessionId?: string;
  /** Marks everything as test traffic. */
  test?: boolean;
  /** `localStorage` in a browser; in memory elsewhere, so that what is unsent ends with the process. */
  store?: AudienceStore;
  /** Names the key header `<prefix>-publishable-key` (`x-service`). */
  headerPrefix?: string;
  /** Gzip where the platform can and the body is worth it (true). */
  compress?: boolean;
  /** Fields of `context` that replace what the client reads itself, asked at each message. */
  context?: () => Partial<EventContext>;
  /** Says on the console what is queued, sent, answered and dropped (false). */
  debug?: boolean;
  /** A message that the service looked at and rejected; it is not sent again. Said on the console unless given. */
  onRejected?: (rejection: MessageRejection) => void;
  /** Said on the console unless given. */
  onDropped?: (dropped: DroppedMessages) => void;
  /** The platform's own unless given. */
  fetch?: Fetch;
}

/**
 * `message`: one is about to be made. `reset`: the person is about to be forgotten. `consent`: the level was set.
 * `close`: the client is about to be closed.
 */
export type ClientEvent = 'message' | 'reset' | 'consent' | 'close';

/**
 * Methods that make a message return its id, or null when consent, a fault, size or `close` kept it from being queued.
 * None throws: a wrong call is said on the console, a game goes on.
 */
export interface AudienceClient {
  /** @param eventName 1 to 256 characters */
  track(eventName: string, properties?: Properties): string | null;
  page(properties?: Properties): string | null;
  screen(screenName?: string, properties?: Properties): string | null;
  /** Says who the person is; later messages, of later pages too, carry the user id. With full consent only. */
  identify(userId: string, about?: { identityType?: IdentityType; traits?: Properties }): string | null;
  /** Says that two ids are one person. With full consent only. */
  alias(link: { fromId: string; fromType?: IdentityType; toId: string; toType?: IdentityType }): string | null;
  /** Adds these to the properties of every later track, page and screen, of later pages too; a call's own win. */
  register(properties: Properties): void;
  /** Takes one of the registered properties away. */
  unregister(name: string): void;
  /** The session that later messages belong to; none when undefined. Not kept for later pages. */
  setSessionId(sessionId: string | undefined): void;
  /** Takes effect at once, also on what is queued: README, "Consent". */
  setConsent(level: ConsentLevel): void;
  /**
   * Forgets the user and the registered properties and takes a new anonymous id, so that the next person on this device
   * is not linked to the last.
   */
  reset(): void;
  /** Sends what is queued, unless the service or the network asked to wait. Gives the number of messages still unsent. */
  flush(): Promise<number>;
  /** Stops timers and listeners and tries once more. Gives the number of messages that stay behind in the store. */
  close(): Promise<number>;
  /** Calls `listener` at each event until what this gives is called. For what builds on the client, as autocapture does. */
  subscribe(listener: (event: ClientEvent) => void): () => void;
  readonly anonymousId: string;
  readonly consent: ConsentLevel;
  readonly store: AudienceStore;
}
