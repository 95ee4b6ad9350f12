/** Message and response types with their JSON names. */

export type MessageType = 'track' | 'page' | 'screen' | 'identify' | 'alias';
export type IdentityType = 'passport' | 'steam' | 'epic' | 'google' | 'apple' | 'discord' | 'email' | 'custom';
export const IDENTITY_TYPES: readonly IdentityType[] = [
  ...(['passport', 'steam', 'epic', 'google'] as const),
  ...(['apple', 'discord', 'email', 'custom'] as const),
];
export type Surface = 'web' | 'pixel' | 'unity' | 'unreal';
export type ConsentLevel = 'none' | 'anonymous' | 'full';
export type Properties = Record<string, unknown>;

export interface EventContext {
  library: string;
  libraryVersion: string;
  userAgent?: string;
  locale?: string;
  timezone?: string;
  screen?: string;
  screenDensity?: number;
  pageUrl?: string;
  pagePath?: string;
  pageReferrer?: string;
  pageTitle?: string;
  browserLanguage?: string;
}

export interface Message {
  type: MessageType;
  messageId: string;
  eventTimestamp: string;
  anonymousId?: string;
  deviceId?: string;
  sessionId?: string;
  context?: EventContext;
  eventName?: string;
  properties?: Properties;
  userId?: string;
  identityType?: IdentityType;
  traits?: Properties;
  fromId?: string;
  fromType?: IdentityType;
  toId?: string;
  toType?: IdentityType;
  surface?: Surface;
  consentLevel?: ConsentLevel;
  test?: boolean;
}

/** A rejected message. The service may add error codes. */
export interface MessageRejection {
  messageId: string;
  errors: { field: string; code: string; message: string }[];
}

/** Maximum messages per batch, as specified in the contract under "Limits". */
export const BATCH_MESSAGES_MAX = 100;
/** Browsers allow 64 KiB of in-flight keepalive bodies. The remainder is left for requests by the page itself. */
export const BATCH_BYTES_MAX: number = 60 * 1024;
/** The service rejects messages that exceed these limits. */
export const MESSAGE_BYTES_MAX: number = 32 * 1024;
export const EVENT_AGE_MAX_MS: number = 30 * 24 * 60 * 60 * 1000;
/** Maximum length of eventName and ids, as specified in the contract under "Limits". */
export const ID_CHARACTERS_MAX = 256;
/** Maximum length of strings in `context`, as specified in the contract under "EventContext". */
export const CONTEXT_CHARACTERS_MAX = { userAgent: 512, pageUrl: 2048, pagePath: 2048, pageReferrer: 2048 } as const;
export const CONTEXT_CHARACTERS_DEFAULT_MAX = 256;

/** Returns a version 4 UUID. `crypto.randomUUID` is missing on pages without TLS. */
export function createMessageId(): string {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, at) => {
    const marked = at === 6 ? (byte & 15) | 64 : at === 8 ? (byte & 63) | 128 : byte;
    return (marked + 256).toString(16).slice(1);
  }).join('');
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
