import type {
  AccessKeyRecord,
  AccountRecord,
  AuditLog,
  CollectionRecord,
  KeyUsage,
  ProjectRecord,
  RateLimitKeyRecord,
  SignableKeyRecord,
  SignerPublicKey,
} from '@playline/access-keys';
import type { LiveHub } from './live/index.ts';
import type { SearchMessages } from './pages/live/search.ts';
import type { PipelineStatus } from './pipeline-status.ts';
import type { PortalReads } from './reads/index.ts';
import type { PortalPeople } from './stores/people.ts';
import type { PortalRecords } from './stores/portal-records.ts';

/** What pages work with: records, and settings that they show. */
export interface PortalParts {
  readonly accounts: PortalRecords<AccountRecord>;
  readonly projects: PortalRecords<ProjectRecord>;
  readonly rateLimitKeys: PortalRecords<RateLimitKeyRecord>;
  readonly collections: PortalRecords<CollectionRecord>;
  readonly signableKeys: PortalRecords<SignableKeyRecord>;
  readonly keys: PortalRecords<AccessKeyRecord>;
  /** How keys are used, by the minute. */
  readonly usage: Pick<KeyUsage, 'readKeys' | 'readEnvironments'>;
  /** What becomes of messages, for all who look. */
  readonly live: LiveHub;
  /** How far the pipeline has come. */
  readonly pipeline: PipelineStatus;
  /** Null where stored messages cannot be searched. */
  readonly searchMessages: SearchMessages | null;
  /** Who is one person, and what may be asked for about them. */
  readonly people: PortalPeople;
  /** What stands in ClickHouse. */
  readonly reads: PortalReads;
  /** For what leaves no record of its own behind. */
  readonly audit: AuditLog;
  readonly settings: PortalSettings;
}

export interface PortalSettings {
  /** ACCESS_KEY_PREFIX */
  readonly keyPrefix: string;
  /** SIGNER_PUBLIC_KEY; null: no signable key can be made. */
  readonly signerKey: SignerPublicKey | null;
  /** Names of the chains of CHAINS; null: not known, and contracts of any chain can be linked. */
  readonly servedChains: readonly string[] | null;
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Where clients reach the gateway and the chain API, for commands that are ready to send. */
  readonly gatewayUrl: string;
  readonly chainApiUrl: string;
}
