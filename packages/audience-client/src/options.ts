import type { ConsentLevel, EventContext, IdentityType, MessageRejection, Properties, Surface } from './message.ts';
import type { Fetch } from './post.ts';
import type { AudienceStore } from './store.ts';

/** Messages that the service will never have from this client. */
export interface DroppedMessages {
  messageIds: string[];
  /**
   * `refused`: the service answered 4xx. `queue_full`: the oldest made room. `too_large`: over 32 KiB. `unserialisable`:
   * JSON cannot say it. `expired`: stored for longer than the service accepts. `consent`: withdrawn. `closed`: too late.
   */
  reason: 'refused' | 'queue_full' | 'too_large' | 'unserialisable' | 'expired' | 'consent' | 'closed';
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
  /** A message that the service looked at and rejected; it is not sent again. */
  onRejected?: (rejection: MessageRejection) => void;
  onDropped?: (dropped: DroppedMessages) => void;
  /** The platform's own unless given. */
  fetch?: Fetch;
}

/** Methods that make a message return its id, or null when consent, size or `close` kept it from being queued. */
export interface AudienceClient {
  track(eventName: string, properties?: Properties): string | null;
  page(properties?: Properties): string | null;
  screen(screenName?: string, properties?: Properties): string | null;
  /** Says who the person is; later messages carry the user id. With full consent only. */
  identify(userId: string, about?: { identityType?: IdentityType; traits?: Properties }): string | null;
  /** Says that two ids are one person. With full consent only. */
  alias(link: { fromId: string; fromType?: IdentityType; toId: string; toType?: IdentityType }): string | null;
  /** Takes effect at once, also on what is queued: README, "Consent". */
  setConsent(level: ConsentLevel): void;
  /** Forgets the user and takes a new anonymous id, so that the next person on this device is not linked to the last. */
  reset(): void;
  /** Sends what is queued, unless the service or the network asked to wait. Gives the number of messages still unsent. */
  flush(): Promise<number>;
  /** Stops timers and listeners and tries once more. Gives the number of messages that stay behind in the store. */
  close(): Promise<number>;
  readonly anonymousId: string;
}
