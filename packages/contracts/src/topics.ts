/** One topic as data: what it is called, how its records are keyed and how long Kafka keeps them. */
export interface Topic {
  readonly name: string;
  /** What the record key is made of; `infra/kafka` does not read it, people and tests do. */
  readonly key:
    | 'environment + owner identity key'
    | 'environment + identity key'
    | 'environment'
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
  /** Whose clock stamps a record: the producer's, or the broker's where times must grow with offsets. */
  readonly timestamps: 'create' | 'log-append';
  /** Of a compacted topic: a record that another has superseded is there for so long at least. */
  readonly compactionLagMs?: number;
  /** Topics with identity data roll segments early, else "72 h" could mean ten days. */
  readonly segmentMs: number;
  /** File in `packages/contracts/schemas`, registered as subject `<topic>-value`; null for bytes as they were. */
  readonly schema: string | null;
}

const HOUR_MS = 60 * 60 * 1000;
/** The local stack's partition count; production sets its own when it creates the topics. */
const PARTITIONS = 6;

const identityTopic = (name: string, key: Topic['key'], schema: string | null): Topic => ({
  name,
  key,
  partitions: PARTITIONS,
  cleanup: 'delete',
  retentionMs: 72 * HOUR_MS,
  timestamps: 'create',
  segmentMs: 6 * HOUR_MS,
  schema,
});

/** Times are the broker's, since activities are served in the order of the log, and each shows its time. */
const chainTopic = (name: string, key: Topic['key'], schema: string): Topic => ({
  name,
  key,
  partitions: PARTITIONS,
  cleanup: 'delete',
  retentionMs: 7 * 24 * HOUR_MS,
  timestamps: 'log-append',
  segmentMs: 24 * HOUR_MS,
  schema,
});

/** What a team asks of its collections; nothing is served in the order of these logs. */
const mintTopic = (name: string, key: Topic['key'], schema: string): Topic => ({
  ...chainTopic(name, key, schema),
  timestamps: 'create',
});

/**
 * Records of access, which name who made each change. The audit is derived from every one of them, also from those that a
 * later one replaces; so these stay for seven days, in which the writer of the audit may be away and lose nothing.
 */
const accessTopic = (name: string, key: Topic['key'], schema: string): Topic => ({
  ...identityTopic(name, key, schema),
  cleanup: 'compact',
  compactionLagMs: 7 * 24 * HOUR_MS,
});

/** Every topic that services write on purpose. */
export const TOPICS = {
  messages: identityTopic('audience.messages.v1', 'environment + owner identity key', 'audience-message.avsc'),
  identityLinks: identityTopic('audience.identity-links.v1', 'environment', 'identity-link.avsc'),
  /** Link facts that wait for an erasure which takes long, as they stood on the topic of links. */
  parkedLinks: identityTopic('audience.identity-links.v1.parked', 'environment', null),
  identityDecisions: identityTopic('audience.identity-decisions.v1', 'environment', 'identity-decision.avsc'),
  rejections: identityTopic('audience.rejections.v1', 'environment', 'rejection.avsc'),
  consents: {
    ...identityTopic('audience.consents.v1', 'environment + identity key', 'consent.avsc'),
    timestamps: 'log-append',
  },
  erasures: {
    ...identityTopic('audience.erasures.v1', 'environment', 'erasure-request.avsc'),
    retentionMs: 7 * 24 * HOUR_MS,
  },
  accessKeys: accessTopic('access.keys.v1', 'key id', 'access-key.avsc'),
  projects: accessTopic('access.projects.v1', 'project id', 'project.avsc'),
  rateLimitKeys: accessTopic('access.rate-limit-keys.v1', 'key id', 'rate-limit-key.avsc'),
  collections: accessTopic('access.collections.v1', 'collection id', 'collection.avsc'),
  accounts: accessTopic('access.accounts.v1', 'account id', 'account.avsc'),
  signableKeys: accessTopic('access.signable-keys.v1', 'address', 'signable-key.avsc'),
  audit: {
    ...identityTopic('access.audit.v1', 'project', 'audit-entry.avsc'),
    retentionMs: 7 * 24 * HOUR_MS,
  },
  /** All activities of a chain stand in the partition of its key, so how far a chain is known is told by one partition. */
  activities: chainTopic('chain.activities.v1', 'chain', 'chain-activity.avsc'),
  tokens: { ...chainTopic('chain.tokens.v1', 'chain + contract', 'chain-token.avsc'), cleanup: 'compact' },
  /** How far each chain is indexed: written with the activities themselves, in one transaction. */
  indexProgress: {
    ...chainTopic('chain.index-progress.v1', 'chain', 'chain-index-progress.avsc'),
    cleanup: 'compact',
  },
  /** All records of a signer stand in one partition of each of these three: it has one writer of transactions at a time. */
  mintRequests: mintTopic('chain.mint-requests.v1', 'chain + signer', 'mint-request.avsc'),
  mintStates: { ...mintTopic('chain.mint-state.v1', 'reference id + attempt', 'mint-state.avsc'), cleanup: 'compact' },
  mintTransactions: {
    ...mintTopic('chain.mint-transactions.v1', 'signer + nonce + variant', 'mint-transaction.avsc'),
    cleanup: 'compact',
  },
  chainMetadata: mintTopic('chain.metadata.v1', 'chain + contract', 'chain-metadata.avsc'),
} as const satisfies Record<string, Topic>;
