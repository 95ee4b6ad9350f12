import type { ConsentLevel, EventContext, IdentityType, MessageRejection, Properties, Surface } from './message.ts';
import type { Fetch } from './post.ts';
import type { AudienceStore } from './store.ts';

/** Messages that were dropped and will never be delivered. */
export interface DroppedMessages {
  messageIds: string[];
  /**
   * `refused`: the service responded with 4xx. `queue_full`: the oldest messages of a full queue. `too_large`: over
   * 32 KiB. `unserialisable`: not representable as JSON. `expired`: older than the service accepts. `consent`: consent
   * was withdrawn. `closed`: the client was closed. `invalid`: the service would reject the message; see `message`.
   */
  reason: 'refused' | 'queue_full' | 'too_large' | 'unserialisable' | 'expired' | 'consent' | 'closed' | 'invalid';
  /** HTTP status, error code and message of the response if the reason is `refused`. */
  status?: number;
  code?: string;
  message?: string;
}

export interface AudienceClientOptions {
  /** URL of the service, without `/v1/…`. */
  baseUrl: string;
  /** May be public, because a publishable key can read only the consent status. */
  publishableKey: string;
  surface?: Surface;
  /** Initial consent level. Default: `none`. */
  consent?: ConsentLevel;
  /** Maximum time that a message waits before its batch is sent. Default: 5,000. */
  flushIntervalMs?: number;
  /** A batch is sent when it reaches this many messages or 60 KiB. Default and maximum: 100. */
  batchMessagesMax?: number;
  /** Maximum number of unsent messages. The oldest messages above the limit are dropped. Default: 1,000. */
  queueMessagesMax?: number;
  /** Maximum size of all unsent messages. Default: 1 MiB. */
  queueBytesMax?: number;
  /** A request without a response is retried after this time. Default: 30,000. */
  requestTimeoutMs?: number;
  /** Values for `context.library` and `context.libraryVersion`, set by libraries that wrap this client. */
  library?: string;
  libraryVersion?: string;
  deviceId?: string;
  sessionId?: string;
  /** Marks every message as test traffic. */
  test?: boolean;
  /** Stores unsent messages, ids and registered properties. Default: `localStorage` in browsers, otherwise memory. */
  store?: AudienceStore;
  /** Prefix of the `<prefix>-publishable-key` header. Default: `x-service`. */
  headerPrefix?: string;
  /** Compresses request bodies with gzip if the platform supports it. Default: true. */
  compress?: boolean;
  /** Called for each message. Returned fields override the client's context fields. */
  context?: () => Partial<EventContext>;
  /** Logs queued, sent and dropped messages and the service's responses. Default: false. */
  debug?: boolean;
  /** Called for each rejected message. Default: logs a warning. */
  onRejected?: (rejection: MessageRejection) => void;
  /** Called when messages are dropped. Default: logs a warning. */
  onDropped?: (dropped: DroppedMessages) => void;
  /** Default: the platform's `fetch`. */
  fetch?: Fetch;
}

/**
 * `message`: before a message is created. `reset`: before the user is forgotten. `consent`: after the consent level has
 * changed. `close`: before the client closes.
 */
export type ClientEvent = 'message' | 'reset' | 'consent' | 'close';

/** Message methods return the message id, or null if nothing was queued. No method throws; invalid calls are logged. */
export interface AudienceClient {
  /** @param eventName 1 to 256 characters */
  track(eventName: string, properties?: Properties): string | null;
  page(properties?: Properties): string | null;
  screen(screenName?: string, properties?: Properties): string | null;
  /** Identifies the player. Messages from this page and later pages contain the user id. Requires full consent. */
  identify(userId: string, details?: { identityType?: IdentityType; traits?: Properties }): string | null;
  /** Declares that two ids belong to one person. Requires full consent. */
  alias(link: { fromId: string; fromType?: IdentityType; toId: string; toType?: IdentityType }): string | null;
  /** Adds properties to all later track, page and screen events. Properties passed to a call take precedence. */
  register(properties: Properties): void;
  unregister(name: string): void;
  /** Sets the session id for later messages from this page. */
  setSessionId(sessionId: string | undefined): void;
  /** Changes the consent level. Applies immediately, including to queued messages. */
  setConsent(level: ConsentLevel): void;
  /** Forgets the user and the registered properties, and creates a new anonymous id. */
  reset(): void;
  /** Sends queued messages, unless a back-off or Retry-After is pending. Resolves to the number of unsent messages. */
  flush(): Promise<number>;
  /** Stops timers and listeners, and sends queued messages once more. Resolves to the number of unsent messages. */
  close(): Promise<number>;
  /** Subscribes an extension to client events. Returns a function that unsubscribes. */
  subscribe(listener: (event: ClientEvent) => void): () => void;
  readonly anonymousId: string;
  readonly consent: ConsentLevel;
  readonly store: AudienceStore;
}
