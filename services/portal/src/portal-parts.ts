import type { AccountRecord, ProjectRecord, RateLimitKeyRecord } from '@playline/access-keys';
import type { Keys } from './stores/keys.ts';
import type { Noun } from './stores/noun.ts';

/** What pages work with: nouns, and settings that they show. */
export interface PortalParts {
  readonly accounts: Noun<AccountRecord>;
  readonly projects: Noun<ProjectRecord>;
  readonly rateLimitKeys: Noun<RateLimitKeyRecord>;
  readonly keys: Keys;
  readonly settings: PortalSettings;
}

export interface PortalSettings {
  /** ACCESS_KEY_PREFIX */
  readonly keyPrefix: string;
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Where clients reach the gateway and the chain API, for commands that are ready to send. */
  readonly gatewayUrl: string;
  readonly chainApiUrl: string;
}
