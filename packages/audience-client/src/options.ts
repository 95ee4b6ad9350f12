import type { ConsentLevel, EventContext, IdentityType, MessageRejection, Properties, Surface } from './message.ts';
import type { Fetch } from './post.ts';
import type { AudienceStore } from './store.ts';

/** Messages that this client will never deliver. */
export interface DroppedMessages {
  messageIds: string[];
  /**
   * `refused`: the service answered 4xx. `queue_full`: the queue was full and these were the oldest. `too_large`: over
   * 32 KiB. `unserialisable`: JSON cannot express it. `expired`: kept for longer than the service accepts. `consent`:
   * it was withdrawn. `closed`: the client was closed already. `invalid`: the service would reject a name or an id;
   * `message` says which.
   */
  reason: 'refused' | 'queue_full' | 'too_large' | 'unserialisable' | 'expired' | 'consent' | 'closed' | 'invalid';
  /** HTTP status of the answer when the reason is `refused`; `code` and `message` come from the error envelope. */
  status?: number;
  code?: string;
  message?: string;
}

export interface AudienceClientOptions {
  /** Address of the service, without `/v1/…`. */
  baseUrl: string;
  /** May be public: it can write messages and consent, and read nothing else. */
  publishableKey: string;
  surface?: Surface;
  /** What the person has agreed to; `none` until `setConsent` is called. */
  consent?: ConsentLevel;
  /** Longest time in milliseconds that a message waits to be sent together with others (5,000). */
  flushIntervalMs?: number;
  /** A batch is sent when it has this many (100, the contract's limit, at most) or 60 KiB. */
  batchMessagesMax?: number;
  /** Most unsent messages kept (1,000). Beyond that the oldest is dropped. */
  queueMessagesMax?: number;
  /** Most bytes of unsent messages kept (1 MiB: a page has 5 MB of storage for everything). */
  queueBytesMax?: number;
  /** After so many milliseconds without an answer a request is given up and sent again (30,000). */
  requestTimeoutMs?: number;
  /** `context.library` and `context.libraryVersion`: set them when a library of your own sends the messages. */
  library?: string;
  libraryVersion?: string;
  deviceId?: string;
  sessionId?: string;
  /** Marks every message as test traffic. */
  test?: boolean;
  /** `localStorage` in a browser. Elsewhere memory: unsent messages are then lost when the process ends. */
  store?: AudienceStore;
  /** The key is sent in the header `<prefix>-publishable-key` (`x-service`). */
  headerPrefix?: string;
  /** Compresses bodies with gzip where the platform can and it saves something (true). */
  compress?: boolean;
  /** Called for each message. Its fields replace those that the client reads itself. */
  context?: () => Partial<EventContext>;
  /** Shows on the console what is queued, sent, answered and dropped (false). */
  debug?: boolean;
  /**
   * Called for each message that the service has rejected; it is not sent again. Without this option the console shows
   * it.
   */
  onRejected?: (rejection: MessageRejection) => void;
  /** Called when messages are dropped. Without this option the console shows it. */
  onDropped?: (dropped: DroppedMessages) => void;
  /** The platform's own by default. */
  fetch?: Fetch;
}

/**
 * `message`: one is about to be made. `reset`: the person is about to be forgotten. `consent`: the level was set.
 * `close`: the client is about to close.
 */
export type ClientEvent = 'message' | 'reset' | 'consent' | 'close';

/**
 * Methods that make a message return its id, or null when it was not queued: because of consent, a mistake, its size or
 * `close`. None of them throws: a wrong call is reported on the console and the game goes on.
 */
export interface AudienceClient {
  /** @param eventName 1 to 256 characters */
  track(eventName: string, properties?: Properties): string | null;
  page(properties?: Properties): string | null;
  screen(screenName?: string, properties?: Properties): string | null;
  /** Says who the person is. Later messages carry the user id, also those of later pages. Needs full consent. */
  identify(userId: string, about?: { identityType?: IdentityType; traits?: Properties }): string | null;
  /** Says that two ids belong to one person. Needs full consent. */
  alias(link: { fromId: string; fromType?: IdentityType; toId: string; toType?: IdentityType }): string | null;
  /**
   * Adds these to the properties of every later track, page and screen, also on later pages. A property of the call
   * itself wins.
   */
  register(properties: Properties): void;
  /** Removes one of the registered properties. */
  unregister(name: string): void;
  /** The session id of later messages; undefined for none. Later pages do not keep it. */
  setSessionId(sessionId: string | undefined): void;
  /** Takes effect at once, also for queued messages: see "Consent" in the README. */
  setConsent(level: ConsentLevel): void;
  /**
   * Forgets the user and the registered properties and takes a new anonymous id, so that the next person on this device
   * is not linked to the last one.
   */
  reset(): void;
  /**
   * Sends what is queued now, unless a back-off or a Retry-After is running. Resolves to the number of messages still
   * unsent.
   */
  flush(): Promise<number>;
  /**
   * Stops timers and listeners and sends once more. Resolves to the number of messages that stay behind in the store.
   */
  close(): Promise<number>;
  /**
   * Calls `listener` at each event. Returns a function that stops this. For code that builds on the client, as
   * autocapture does.
   */
  subscribe(listener: (event: ClientEvent) => void): () => void;
  readonly anonymousId: string;
  readonly consent: ConsentLevel;
  readonly store: AudienceStore;
}
