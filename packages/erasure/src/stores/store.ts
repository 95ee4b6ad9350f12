/** The registry of stores that may contain personal data: types, topics, Redis keys and system tables. */

/** A column that may contain another person's key, and the string columns that contain the id itself. */
export interface CarriedKey {
  /** Blanked to zero bytes. */
  readonly key: string;
  /** Blanked to the empty string. */
  readonly idColumns: readonly string[];
}

/** Rows are found by identity key. */
export interface Sweep {
  readonly by: 'sweep';
  /** Key columns of the row's owner or subject. If any of them matches, the row is deleted. */
  readonly ownKeys: readonly string[];
  /**
   * Key columns that may contain another person's identity. Only matching columns are blanked. Must not be
   * part of the sorting key.
   */
  readonly carriedKeys: readonly CarriedKey[];
  /** As for fences, a row is erased if the earliest of these timestamps is not later than the cut-off. */
  readonly timeColumns: readonly string[];
  /** Rows that contain one of these values in the column are not personal data and are kept. */
  readonly keptRows?: { readonly column: string; readonly values: readonly string[] };
}

/** Rows are derived from `events`. They are deleted by identity key and rederived from the remaining events. */
export interface Derivation {
  readonly by: 'derived';
  /** Parameterized view (`since`, `until`) that derives rows from the events in a time range. */
  readonly view: string;
  /**
   * Columns by which rows are compared, starting with `environment_id` and `identity_key`. Duplicates may differ in
   * `test`.
   */
  readonly keys: readonly string[];
  /** Expressions that aggregate the other columns over unmerged rows that have the same key. */
  readonly values: readonly string[];
}

/** How personal data is removed from a store. */
export type Clearing =
  | Sweep
  | Derivation
  /** Redis scripts delete the data by key. */
  | { readonly by: 'script'; readonly script: string }
  | { readonly by: 'ttl'; readonly windowMs: number; readonly reason: string }
  | { readonly by: 'kept'; readonly reason: string }
  | { readonly by: 'no personal data'; readonly reason: string };

/** A Kafka topic without its prefix, or a Redis key family as in `infra/redis/README.md`. */
export interface ErasureStore {
  readonly name: string;
  readonly clearing: Clearing;
}

export interface TableStore extends ErasureStore {
  /** Meaning of each column. A swept table lists only identity-like columns that the sweep does not use. */
  readonly columns: Readonly<Record<string, string>>;
  /** Meaning of columns that operators may add, by name prefix. */
  readonly prefixes?: Readonly<Record<string, string>>;
}

export interface DerivedTable extends TableStore {
  readonly clearing: Derivation;
}

export interface SweptTable extends TableStore {
  readonly clearing: Sweep;
}

/** Inverts a map from meaning to space-separated column names. */
export const columnsOf = (namesByMeaning: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(namesByMeaning).flatMap(([meaning, names]) => names.split(' ').map((name) => [name, meaning])),
  );

export const withoutPersonalData = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'no personal data', reason },
});

const HOUR_MS = 60 * 60 * 1000;
/** Retention of 72 hours after the last record in a segment, plus the six hours that a segment covers. */
const IDENTITY_WINDOW_MS = 78 * HOUR_MS;
/**
 * Time until the log contains no data of an erased person. Includes late publishing and the brokers' retention check.
 */
export const LOG_EXPIRES_AFTER_MS = IDENTITY_WINDOW_MS + HOUR_MS / 6;
/** Retention of seven days, plus the six hours that a segment covers. */
const ERASURES_WINDOW_MS = (7 * 24 + 6) * HOUR_MS;

/** A topic and its dead-letter topic, which contains unchanged records. */
function expiringTopic(name: string, reason: string, windowMs = IDENTITY_WINDOW_MS): ErasureStore[] {
  return [
    { name, clearing: { by: 'ttl', windowMs, reason } },
    { name: `${name}.dead`, clearing: { by: 'ttl', windowMs, reason: `unchanged records: ${reason}` } },
  ];
}

const otherTopic = (name: string, reason: string): ErasureStore[] => [
  withoutPersonalData(name, reason),
  withoutPersonalData(`${name}.dead`, reason),
];

const MINTED = 'assets that a team mints for public addresses; does not reveal who owns an address';

export const TOPIC_STORES: readonly ErasureStore[] = [
  expiringTopic('audience.messages.v1', 'messages with their ids'),
  expiringTopic('audience.identity-links.v1', 'linked ids'),
  // Parked facts are republished every day, so the window starts when the last erasure that delays them has ended.
  expiringTopic('audience.identity-links.v1.parked', 'linked ids, received after the cut-off of a running erasure'),
  expiringTopic('audience.identity-decisions.v1', 'keyed hashes of identities'),
  expiringTopic('audience.rejections.v1', 'field names and codes; dead letters contain client input'),
  expiringTopic('audience.consents.v1', 'keyed hashes of identities and their consent'),
  expiringTopic('audience.erasures.v1', 'keyed hashes of people to erase', ERASURES_WINDOW_MS),
  otherTopic('access.keys.v1', 'hashes of project keys'),
  otherTopic('access.projects.v1', 'names of projects and environments'),
  otherTopic('access.rate-limit-keys.v1', 'hashes of partner keys'),
  otherTopic('access.collections.v1', 'contracts linked by projects'),
  otherTopic('access.accounts.v1', 'names and logins of portal users; removed with their accounts'),
  otherTopic('access.signable-keys.v1', 'addresses of the service and sealed private keys'),
  otherTopic('access.audit.v1', 'actions of portal users and the IP addresses they used'),
  otherTopic('chain.activities.v1', 'public addresses and events on a chain; does not reveal who owns an address'),
  otherTopic('chain.tokens.v1', 'public data of tokens'),
  otherTopic('chain.index-progress.v1', 'block numbers and hashes'),
  otherTopic('chain.mint-requests.v1', MINTED),
  otherTopic('chain.mint-state.v1', MINTED),
  otherTopic('chain.mint-transactions.v1', 'public transactions'),
  otherTopic('chain.metadata.v1', 'public metadata of collections'),
].flat();

const byScript = (name: string, script: string): ErasureStore => ({ name, clearing: { by: 'script', script } });
const FORGOTTEN = 'the person is removed from the graph';
const RELEASED = 'the hold is released when the erasure ends';

/** Redis key families. They contain identities only as keyed hashes. */
export const REDIS_STORES: readonly ErasureStore[] = [
  byScript('i:{env}:<bucket>', FORGOTTEN),
  byScript('m:{env}:<root>', FORGOTTEN),
  {
    name: 'f:{env}:<bucket>',
    clearing: { by: 'kept', reason: 'keyed hashes, without which erased data would return' },
  },
  withoutPersonalData('f:{env}', 'buckets that have a fence'),
  withoutPersonalData('f:complete', 'id of a Redis run'),
  byScript('u:{env}', `${FORGOTTEN}; the time of the latest unlink is kept`),
  byScript('q:{env}', `${FORGOTTEN}; operator rulings are kept, by keyed hash`),
  withoutPersonalData('d:{env}', 'offsets'),
  byScript('h:{env}', RELEASED),
  byScript('hl:{env}', RELEASED),
  byScript('hk:{env}', RELEASED),
  byScript('erasure:lapsing', `${RELEASED}; contains no identity`),
  byScript('c:{env}:<bucket>', 'the consents are deleted'),
  withoutPersonalData('c:log:<consent topic>', 'offsets'),
  byScript('o:{env}', 'trimmed after the decisions are published, which the erasure waits for'),
  withoutPersonalData('identity:applied:<link topic>', 'offsets'),
  withoutPersonalData('identity:epoch', 'a random id'),
  withoutPersonalData('access:<kind>', 'projects, project keys, partner keys and portal accounts'),
  withoutPersonalData('access:<kind>:places', 'offsets'),
  withoutPersonalData('access:<kind>:changes', 'random ids of access records'),
  withoutPersonalData('access:<kind>:complete', 'id of a Redis run'),
  withoutPersonalData('access:<kind>:turn', 'a running command'),
  withoutPersonalData('access:session:<hash>', 'a portal session; expires within seven days'),
  withoutPersonalData('access:session:of:<account id>', 'hashes of portal sessions'),
  withoutPersonalData('access:one-time:<purpose>:<hash>', 'one-time links and challenges for portal users'),
  withoutPersonalData('access:one-time:spent:<purpose>:<hash>', 'a submitted form'),
  withoutPersonalData('access:one-time:attempts:<hash>', 'number of sign-in attempts; the login is hashed'),
  withoutPersonalData('access:usage:keys:<minute>', 'project key usage'),
  withoutPersonalData('access:usage:key-hours:<hour>', 'project key usage'),
  withoutPersonalData('access:usage:environments:<minute>', 'message counts'),
  withoutPersonalData('access:usage:last-uses', 'timestamps'),
  withoutPersonalData('access:usage:last-refusals', 'timestamps, response codes and trace ids'),
  withoutPersonalData('alerts:turn', 'id of a portal process'),
  withoutPersonalData('alerts:active', 'counts of messages, names of keys'),
  withoutPersonalData('alerts:acknowledged', 'portal accounts'),
  withoutPersonalData('alerts:due:<channel>', 'project ids'),
  withoutPersonalData('alerts:queue:<channel>:<project id>', 'counts of messages, names of keys'),
  withoutPersonalData('alerts:evaluated-at', 'a time'),
  withoutPersonalData('chain:watermark', 'timestamps'),
  withoutPersonalData('mint:claim:{chain:contract}:<project id>:<reference id>', 'the current attempt of a reference'),
  withoutPersonalData('mint:state:{chain:contract}:<project id>:<reference id>', MINTED),
  withoutPersonalData('mint:pending:<project id>', "a project's pending claims"),
  withoutPersonalData('mint:settled:<project id>', "a project's recently settled claims"),
  withoutPersonalData('mint:settled-bytes:<project id>', "size of a project's recently settled claims"),
  withoutPersonalData('mint:floor:<project id>', "time of a project's mint request"),
  withoutPersonalData('mint:failed:<project id>', "number of a project's recently failed assets"),
  withoutPersonalData('mint:cleaned:<project id>', 'a recent removal of expired claims'),
  withoutPersonalData('mint:quota:<kind>:<project id>', "number of a project's minted assets"),
  withoutPersonalData('mint:complete', 'id of a Redis run'),
  withoutPersonalData('mint:places', 'offsets'),
  withoutPersonalData('rate:<id>', 'project keys; client addresses stay in process memory'),
];

/** The TTL in `infra/clickhouse/system-logs.xml`, equal to the retention of the log. */
const SYSTEM_LOG_WINDOW_MS = 78 * HOUR_MS;

const inSystemLog = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'ttl', windowMs: SYSTEM_LOG_WINDOW_MS, reason },
});
const inMemory = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'kept', reason: `in memory until restart or eviction: ${reason}` },
});

const QUERY_TEXTS = 'queries by services contain keys; queries by users may contain anything';

/** System tables that contain queries or error messages. Erasure statements contain no keys. */
export const SYSTEM_STORES: readonly ErasureStore[] = [
  inSystemLog('query_log', QUERY_TEXTS),
  inSystemLog('part_log', 'part names and error messages'),
  inMemory('errors', 'the last message of each error'),
  inMemory('warnings', 'server warnings'),
  inMemory('processes', QUERY_TEXTS),
  inMemory('query_cache', 'query results, kept for a minute if the query requests it'),
  inMemory('asynchronous_inserts', 'queued inserts, which Playline does not use'),
  inMemory('distributed_ddl_queue', 'statements that create and alter tables'),
  { name: 'mutations', clearing: { by: 'kept', reason: 'the last hundred mutations per table; contain batch ids' } },
  withoutPersonalData('projections', 'queries in the schema'),
  withoutPersonalData('dashboards', 'queries shipped with ClickHouse'),
];
