/** A topic: its name, the key of its records and how long Kafka keeps them. */
export interface Topic {
  readonly name: string;
  /** Parts of the record key. For readers and tests only; `infra/kafka` does not use it. */
  readonly key:
    | 'environment + owner identity key'
    | 'environment + identity key'
    | 'environment'
    | 'environment + key kind'
    | 'key id'
    | 'project id'
    | 'collection id'
    | 'account id'
    | 'address'
    | 'project'
    | 'chain'
    | 'chain + contract'
    | 'chain + signer'
    | 'reference id + attempt'
    | 'signer + nonce + variant'
    | 'as the source';
  readonly partitions: number;
  readonly cleanup: 'delete' | 'compact';
  readonly retentionMs: number;
  /** For a compacted topic: the least time that a superseded record is kept, in milliseconds. */
  readonly compactionLagMs?: number;
  /** Kafka deletes whole segments. Topics with identity data roll them early, or "72 h" could become ten days. */
  readonly segmentMs: number;
  /** File in `packages/contracts/schemas`, registered as `schemaSubjectOf` its topic; null for raw bytes. */
  readonly schema: string | null;
}

const HOUR_MS = 60 * 60 * 1000;
/** Partitions in the local stack. Production sets its own number when it creates the topics. */
const PARTITIONS = 6;

const identityTopic = (name: string, key: Topic['key'], schema: string | null): Topic => ({
  name,
  key,
  partitions: PARTITIONS,
  cleanup: 'delete',
  retentionMs: 72 * HOUR_MS,
  segmentMs: 6 * HOUR_MS,
  schema,
});

const chainTopic = (name: string, key: Topic['key'], schema: string): Topic => ({
  name,
  key,
  partitions: PARTITIONS,
  cleanup: 'delete',
  retentionMs: 7 * 24 * HOUR_MS,
  segmentMs: 24 * HOUR_MS,
  schema,
});

/**
 * Records of access with the author of each change. The audit is made from every record, also from superseded ones. So
 * these are kept for seven days, in which the writer of the audit may be down without a loss.
 */
const accessTopic = (name: string, key: Topic['key'], schema: string): Topic => ({
  ...identityTopic(name, key, schema),
  cleanup: 'compact',
  compactionLagMs: 7 * 24 * HOUR_MS,
});

/** Every topic except those of dead letters. */
export const TOPICS = {
  messages: identityTopic('audience.messages.v1', 'environment + owner identity key', 'audience-message.avsc'),
  identityLinks: identityTopic('audience.identity-links.v1', 'environment', 'identity-link.avsc'),
  /** Parked link facts: unchanged copies of facts that wait for a long erasure. */
  parkedLinks: identityTopic('audience.identity-links.v1.parked', 'environment', null),
  identityDecisions: identityTopic('audience.identity-decisions.v1', 'environment', 'identity-decision.avsc'),
  rejections: identityTopic('audience.rejections.v1', 'environment', 'rejection.avsc'),
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
  audit: {
    ...identityTopic('access.audit.v1', 'project', 'audit-entry.avsc'),
    retentionMs: 7 * 24 * HOUR_MS,
  },
  /**
   * All activities of a chain are in one partition, that of its key, so that partition alone has the chain's watermark.
   */
  activities: chainTopic('chain.activities.v1', 'chain', 'chain-activity.avsc'),
  tokens: { ...chainTopic('chain.tokens.v1', 'chain + contract', 'chain-token.avsc'), cleanup: 'compact' },
  /** How far each chain is indexed. Written in one transaction with the activities. */
  indexProgress: {
    ...chainTopic('chain.index-progress.v1', 'chain', 'chain-index-progress.avsc'),
    cleanup: 'compact',
  },
  /**
   * Each of these three has all records of a signer in one partition, so only one process at a time writes its
   * transactions.
   */
  mintRequests: chainTopic('chain.mint-requests.v1', 'chain + signer', 'mint-request.avsc'),
  mintStates: { ...chainTopic('chain.mint-state.v1', 'reference id + attempt', 'mint-state.avsc'), cleanup: 'compact' },
  mintTransactions: {
    ...chainTopic('chain.mint-transactions.v1', 'signer + nonce + variant', 'mint-transaction.avsc'),
    cleanup: 'compact',
  },
  chainMetadata: chainTopic('chain.metadata.v1', 'chain + contract', 'chain-metadata.avsc'),
} as const satisfies Record<string, Topic>;

/** The subject under which the registry keeps the schemas of a topic's values. */
export const schemaSubjectOf = (topic: string): string => `${topic}-value`;
