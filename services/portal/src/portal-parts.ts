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
import type { PipelineStatus } from './pipeline-status.ts';
import type { PortalReads } from './reads/index.ts';
import type { PortalPeople } from './stores/people.ts';
import type { PortalRecords } from './stores/portal-records.ts';

/** The stores and settings of pages. */
export interface PortalParts {
  readonly accounts: PortalRecords<AccountRecord>;
  readonly projects: PortalRecords<ProjectRecord>;
  readonly rateLimitKeys: PortalRecords<RateLimitKeyRecord>;
  readonly collections: PortalRecords<CollectionRecord>;
  readonly signableKeys: PortalRecords<SignableKeyRecord>;
  readonly keys: PortalRecords<AccessKeyRecord>;
  readonly usage: Pick<KeyUsage, 'readKeys' | 'readEnvironments'>;
  readonly live: LiveHub;
  readonly pipeline: PipelineStatus;
  readonly people: PortalPeople;
  /** ClickHouse. */
  readonly reads: PortalReads;
  /** For actions that leave no record of their own. */
  readonly audit: AuditLog;
  readonly settings: PortalSettings;
}

export interface PortalSettings {
  /** ACCESS_KEY_PREFIX */
  readonly keyPrefix: string;
  /** SIGNER_PUBLIC_KEY; without it, no signable key can be created. */
  readonly signerKey: SignerPublicKey | null;
  /** CHAINS; when null, contracts of any chain can be linked. */
  readonly servedChains: readonly string[] | null;
  /** HTTP_HEADER_PREFIX */
  readonly headerPrefix: string;
  /** Addresses in the commands that pages show. */
  readonly gatewayUrl: string;
  readonly chainApiUrl: string;
}
