export interface Topic {
  readonly name: string;
  /** The components of the record key, for documentation only. */
  readonly key: string;
  readonly partitions: number;
  /** True if partitions may be added while records are published, which moves keys to other partitions. */
  readonly canGrow?: true;
  readonly cleanup: 'delete' | 'compact';
  readonly retentionMs: number;
  /** Minimum time for which a compacted topic retains superseded records. */
  readonly compactionLagMs?: number;
  /** Kafka deletes only whole segments, so topics with identity data roll segments early. */
  readonly segmentMs: number;
  /** File in `packages/contracts/schemas`; null for raw bytes. */
  readonly schema: string | null;
}

const HOUR_MS = 60 * 60 * 1000;
/** Applies to the local stack; production deployments override it. */
const PARTITIONS = 6;

const createTopicFactory =
  (retentionHours: number, segmentHours: number) =>
  (name: string, key: string, schema: string | null): Topic => ({
    name,
    key,
    partitions: PARTITIONS,
    cleanup: 'delete',
    retentionMs: retentionHours * HOUR_MS,
    segmentMs: segmentHours * HOUR_MS,
    schema,
  });

const identityTopic = createTopicFactory(72, 6);
const chainTopic = createTopicFactory(7 * 24, 24);

/** Superseded records are retained for the audit log, whose writer may be down for up to seven days. */
const accessTopic = (name: string, key: string, schema: string): Topic => ({
  ...identityTopic(name, key, schema),
  cleanup: 'compact',
  compactionLagMs: 7 * 24 * HOUR_MS,
});

/** All topics except the dead-letter topics. */
export const TOPICS = {
  messages: {
    ...identityTopic('audience.messages.v1', 'environment + owner identity key', 'audience-message.avsc'),
    canGrow: true,
  },
  identityLinks: identityTopic('audience.identity-links.v1', 'environment', 'identity-link.avsc'),
  /** Copies of parked facts that wait for a long erasure. */
  parkedLinks: identityTopic('audience.identity-links.v1.parked', 'environment', null),
  identityDecisions: identityTopic('audience.identity-decisions.v1', 'environment', 'identity-decision.avsc'),
  rejections: { ...identityTopic('audience.rejections.v1', 'environment', 'rejection.avsc'), canGrow: true },
  consents: identityTopic('audience.consents.v1', 'environment + identity key', 'consent.avsc'),
  erasures: {
    ...identityTopic('audience.erasures.v1', 'environment', 'erasure-request.avsc'),
    retentionMs: 7 * 24 * HOUR_MS,
  },
  accessKeys: accessTopic('access.keys.v1', 'environment + key kind', 'access-key.avsc'),
  projects: accessTopic('access.projects.v1', 'project id', 'project.avsc'),
  rateLimitKeys: accessTopic('access.rate-limit-keys.v1', 'key id', 'rate-limit-key.avsc'),
  collections: accessTopic('access.collections.v1', 'collection id', 'collection.avsc'),
  accounts: accessTopic('access.accounts.v1', 'account id', 'account.avsc'),
  signableKeys: accessTopic('access.signable-keys.v1', 'address', 'signable-key.avsc'),
  audit: { ...identityTopic('access.audit.v1', 'project', 'audit-entry.avsc'), retentionMs: 7 * 24 * HOUR_MS },
  /** Each chain has one partition, and its record timestamps are the chain's watermark. */
  activities: chainTopic('chain.activities.v1', 'chain', 'chain-activity.avsc'),
  tokens: { ...chainTopic('chain.tokens.v1', 'chain + contract', 'chain-token.avsc'), cleanup: 'compact' },
  /** Written in the same transaction as the activities. */
  indexProgress: { ...chainTopic('chain.index-progress.v1', 'chain', 'chain-index-progress.avsc'), cleanup: 'compact' },
  /**
   * In the mint topics, all records of a signer are in one partition, so that only one process uses the signer. A
   * signer remains in the partition that contains its records.
   */
  mintRequests: { ...chainTopic('chain.mint-requests.v1', 'chain + signer', 'mint-request.avsc'), canGrow: true },
  mintStates: {
    ...chainTopic('chain.mint-state.v1', 'reference id + attempt', 'mint-state.avsc'),
    cleanup: 'compact',
    canGrow: true,
  },
  mintTransactions: {
    ...chainTopic('chain.mint-transactions.v1', 'signer + nonce + variant', 'mint-transaction.avsc'),
    cleanup: 'compact',
    canGrow: true,
  },
  chainMetadata: chainTopic('chain.metadata.v1', 'chain + contract', 'chain-metadata.avsc'),
} as const satisfies Record<string, Topic>;

export const schemaSubjectOf = (topic: string): string => `${topic}-value`;
