/**
 * Where the rows of a table are in a cluster of ClickHouse: divided among the shards by an expression, copied to every
 * node, or separate on each node, because they describe this node.
 */
export type TableDistribution = { readonly shardedBy: string } | 'everywhere' | 'local';

const OWNER_KEY = 'concat(environment_id, identity_key)';
/** Kafka's partitioner over Kafka's key: all rows of an owner are on one shard, and a block of a partition is too. */
const BY_OWNER = { shardedBy: `kafkaMurmurHash(${OWNER_KEY})` };
/** Each shard adds rows for its inserts. Which shard has a row that is inserted directly does not matter. */
const BY_CHANCE = { shardedBy: 'rand()' };

/** All other tables are on the first node only, the home. */
export const TABLE_DISTRIBUTIONS: Readonly<Record<string, TableDistribution>> = {
  events: {
    shardedBy: `kafkaMurmurHash(if(identity_key = toFixedString('', 16), toString(message_id), ${OWNER_KEY}))`,
  },
  identity_days: BY_OWNER,
  identities: BY_OWNER,
  session_days: BY_OWNER,
  counted_minutes: BY_CHANCE,
  identity_overrides: 'everywhere',
  environment_settings: 'everywhere',
  analyst_grants: 'everywhere',
  erasure_targets: 'everywhere',
  event_days: 'local',
  counted_days: 'local',
  erasure_found: 'local',
  identity_persons: 'local',
  applied_sql_files: 'local',
};

/** Tables whose rows depend on the number of shards. */
export const SHARDED_TABLES: readonly { readonly name: string; readonly shardedBy: string }[] = Object.entries(
  TABLE_DISTRIBUTIONS,
).flatMap(([name, distribution]) =>
  typeof distribution === 'object' && distribution !== BY_CHANCE ? [{ name, shardedBy: distribution.shardedBy }] : [],
);

/** Tables of which every node has a copy. */
export const COPIED_TABLES: readonly string[] = Object.entries(TABLE_DISTRIBUTIONS).flatMap(([name, distribution]) =>
  distribution === 'everywhere' ? [name] : [],
);
