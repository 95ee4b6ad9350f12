import type { ConsentLevel, EventContext, IdentityType, MessageRejection, Properties, Surface } from './message.ts';
import type { Fetch } from './post.ts';
import type { AudienceStore } from './store.ts';

/** Messages that are never delivered. */
export interface DroppedMessages {
  messageIds: string[];
  /**
   * `refused`: the service answered 4xx. `queue_full`: the oldest of a full queue. `too_large`: over 32 KiB.
   * `unserialisable`: not JSON. `expired`: older than the service accepts. `consent`: withdrawn. `closed`: the client
   * was closed. `invalid`: a name or id that the service would reject; `message` names it.
   */
  reason: 'refused' | 'queue_full' | 'too_large' | 'unserialisable' | 'expired' | 'consent' | 'closed' | 'invalid';
  /** Status, code and message of the answer when the reason is `refused`. */
  status?: number;
  code?: string;
  message?: string;
}

export interface AudienceClientOptions {
  /** Address of the service, without `/v1/…`. */
  baseUrl: string;
  /** May be public: it cannot read anything but consent. */
  publishableKey: string;
  surface?: Surface;
  /** What the person has agreed to, until `setConsent` is called (`none`). */
  consent?: ConsentLevel;
  /** Longest time in milliseconds that a message waits for others (5,000). */
  flushIntervalMs?: number;
  /** A batch is sent with this many messages (100, which is also the maximum) or 60 KiB. */
  batchMessagesMax?: number;
  /** Most unsent messages (1,000); beyond, the oldest is dropped. */
  queueMessagesMax?: number;
  /** Most bytes of unsent messages (1 MiB). */
  queueBytesMax?: number;
  /** Milliseconds until a request without an answer is retried (30,000). */
  requestTimeoutMs?: number;
  /** `context.library` and `context.libraryVersion` for a library that uses this client. */
  library?: string;
  libraryVersion?: string;
  deviceId?: string;
  sessionId?: string;
  /** Marks every message as test traffic. */
  test?: boolean;
  /** Unsent messages, ids and registered properties: `localStorage` in a browser, memory elsewhere. */
  store?: AudienceStore;
  /** The key is sent in the header `<prefix>-publishable-key` (`x-service`). */
  headerPrefix?: string;
  /** Compresses bodies with gzip where the platform can (true). */
  compress?: boolean;
  /** Called for each message; its fields replace those of the client. */
  context?: () => Partial<EventContext>;
  /** Logs what is queued, sent, answered and dropped (false). */
  debug?: boolean;
  /** Called for each rejected message. By default the console shows it. */
  onRejected?: (rejection: MessageRejection) => void;
  /** Called when messages are dropped. By default the console shows it. */
  onDropped?: (dropped: DroppedMessages) => void;
  /** By default the platform's own. */
  fetch?: Fetch;
}

/**
 * `message`: before one is created. `reset`: before the person is forgotten. `consent`: after the level was set.
 * `close`: before the client closes.
 */
export type ClientEvent = 'message' | 'reset' | 'consent' | 'close';

/**
 * The message methods return the message id, or null when nothing was queued. No method throws; a wrong call is logged.
 */
export interface AudienceClient {
  /** @param eventName 1 to 256 characters */
  track(eventName: string, properties?: Properties): string | null;
  page(properties?: Properties): string | null;
  screen(screenName?: string, properties?: Properties): string | null;
  /** Names the person. Later messages carry the user id, also those of later pages. Needs full consent. */
  identify(userId: string, about?: { identityType?: IdentityType; traits?: Properties }): string | null;
  /** Declares that two ids belong to one person. Needs full consent. */
  alias(link: { fromId: string; fromType?: IdentityType; toId: string; toType?: IdentityType }): string | null;
  /** Adds properties to every later track, page and screen, also on later pages; properties of the call win. */
  register(properties: Properties): void;
  unregister(name: string): void;
  /** The session id of later messages of this page. */
  setSessionId(sessionId: string | undefined): void;
  /** Applies immediately, also to queued messages. */
  setConsent(level: ConsentLevel): void;
  /** Forgets the user and the registered properties and creates a new anonymous id. */
  reset(): void;
  /** Sends unless a back-off or a Retry-After is running. Resolves to the number of unsent messages. */
  flush(): Promise<number>;
  /** Stops timers and listeners and sends once more. Resolves to the number of unsent messages. */
  close(): Promise<number>;
  /** Calls `listener` at each event, for extensions. Returns a function that unsubscribes. */
  subscribe(listener: (event: ClientEvent) => void): () => void;
  readonly anonymousId: string;
  readonly consent: ConsentLevel;
  readonly store: AudienceStore;
}
