import type {
  AccessKeyRecord,
  AccountRecord,
  AnalystStore,
  AuditLog,
  CollectionRecord,
  KeyUsage,
  ProjectRecord,
  RateLimitKeyRecord,
  ReadCode,
  SignableKeyRecord,
} from '@playline/access-keys';
import type { AlertStore } from '@playline/alerts';
import type { AlertDelivery } from './alerts/delivery.ts';
import type { PortalSettings } from './config.ts';
import type { LiveHub } from './live/index.ts';
import type { DemoLoader } from './pages/demo/loader.ts';
import type { PipelineStatus } from './pipeline-status.ts';
import type { PortalReads } from './reads/index.ts';
import type { PortalPeople } from './stores/people.ts';
import type { PortalRecords } from './stores/portal-records.ts';

export interface PortalParts {
  readonly accounts: PortalRecords<AccountRecord>;
  readonly projects: PortalRecords<ProjectRecord>;
  readonly rateLimitKeys: PortalRecords<RateLimitKeyRecord>;
  readonly collections: PortalRecords<CollectionRecord>;
  readonly signableKeys: PortalRecords<SignableKeyRecord>;
  readonly keys: PortalRecords<AccessKeyRecord>;
  readonly usage: Pick<KeyUsage, 'readKeys' | 'readEnvironments'>;
  readonly live: LiveHub;
  readonly demo: DemoLoader;
  readonly pipeline: PipelineStatus;
  readonly people: PortalPeople;
  readonly reads: PortalReads;
  /** Logs actions that do not change a record. */
  readonly audit: AuditLog;
  /** Database credentials of members. Null without CLICKHOUSE_ACCOUNTS_PASSWORD. */
  readonly analysts: AnalystStore | null;
  readonly alerts: {
    readonly store: Pick<AlertStore, 'read' | 'evaluatedAt' | 'acknowledge'>;
    readonly delivery: Pick<AlertDelivery, 'hasEmail' | 'keyOf' | 'test'>;
  };
  readonly readCode: ReadCode;
  readonly settings: PortalSettings;
}
