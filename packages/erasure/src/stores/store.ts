/** The registry of stores that may hold personal data: types, topics, Redis keys and system tables. */

/** A column with another person's key in a row, and the texts that repeat the id. */
export interface CarriedKey {
  /** Blanked to zero bytes. */
  readonly key: string;
  /** Blanked to the empty text. */
  readonly texts: readonly string[];
}

/** Rows are found by the keys of erased people. */
export interface Sweep {
  readonly by: 'sweep';
  /** Key columns of the person whom a row belongs to or describes: the row is deleted. */
  readonly own: readonly string[];
  /** Key columns that name the person in another person's row: only they are blanked. Not in the sorting key. */
  readonly carried: readonly CarriedKey[];
  /** Times of a row. It is erased if the earliest is not later than the cut-off, as with fences. */
  readonly times: readonly string[];
  /** Rows with one of these values in this column are not personal, and are kept. */
  readonly kept?: { readonly column: string; readonly values: readonly string[] };
}

/** Rows follow from `events`: they are deleted by identity and derived again from the remaining events. */
export interface Derivation {
  readonly by: 'derived';
  /** Parameterised view (`since`, `until`) that returns the rows that the events of a span imply. */
  readonly view: string;
  /** Columns by which rows are compared, `environment_id` and `identity_key` first. Copies may differ in `test`. */
  readonly keys: readonly string[];
  /** The other values of a row, as expressions that aggregate the unmerged rows of a key. */
  readonly values: readonly string[];
}

/** How personal data are removed from a store. */
export type Clearing =
  | Sweep
  | Derivation
  /** Deleted by key, by the scripts that own the layout. */
  | { readonly by: 'script'; readonly script: string }
  | { readonly by: 'ttl'; readonly windowMs: number; readonly reason: string }
  | { readonly by: 'kept'; readonly reason: string }
  | { readonly by: 'no personal data'; readonly reason: string };

/** A Kafka topic without its prefix, or a family of Redis keys as in `infra/redis/README.md`. */
export interface ErasureStore {
  readonly name: string;
  readonly clearing: Clearing;
}

export interface TableStore extends ErasureStore {
  /** Meaning of each column. A swept table lists only columns that resemble identities and that its sweep omits. */
  readonly columns: Readonly<Record<string, string>>;
  /** Meaning of columns that operators may add, by the prefix of their names. */
  readonly prefixes?: Readonly<Record<string, string>>;
}

export interface DerivedTable extends TableStore {
  readonly clearing: Derivation;
}

export interface SweptTable extends TableStore {
  readonly clearing: Sweep;
}

/** Columns by name from lists of names by meaning. */
export const columnsOf = (namesByMeaning: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(namesByMeaning).flatMap(([meaning, names]) => names.split(' ').map((name) => [name, meaning])),
  );

export const withoutPersonalData = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'no personal data', reason },
});

const HOUR_MS = 60 * 60 * 1000;
/** 72 hours after the last record of a segment, which takes six hours to fill. */
const IDENTITY_WINDOW_MS = 78 * HOUR_MS;
/** From the end of the log until it holds no data of a person: plus late publishing and the brokers' expiry check. */
export const LOG_EXPIRES_AFTER_MS = IDENTITY_WINDOW_MS + HOUR_MS / 6;
/** Seven days, likewise. */
const ERASURES_WINDOW_MS = (7 * 24 + 6) * HOUR_MS;

/** A topic and its dead letters, which keep records unchanged, including unreadable ones. */
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

const MINTED = 'assets that a team mints for public addresses; not whose an address is';

export const TOPIC_STORES: readonly ErasureStore[] = [
  expiringTopic('audience.messages.v1', 'messages with their ids'),
  expiringTopic('audience.identity-links.v1', 'linked ids'),
  // Waiting facts are written again every day, so the window begins when their last erasure has ended.
  expiringTopic('audience.identity-links.v1.parked', 'linked ids, received after the cut-off of a running erasure'),
  expiringTopic('audience.identity-decisions.v1', 'keyed hashes of identities'),
  expiringTopic('audience.rejections.v1', 'names of the contract; in dead letters text of clients'),
  expiringTopic('audience.consents.v1', 'keyed hashes of identities and their consent'),
  expiringTopic('audience.erasures.v1', 'keyed hashes of people to erase', ERASURES_WINDOW_MS),
  otherTopic('access.keys.v1', 'hashes of project keys'),
  otherTopic('access.projects.v1', 'names of projects and environments'),
  otherTopic('access.rate-limit-keys.v1', 'hashes of partner keys'),
  otherTopic('access.collections.v1', 'contracts linked by projects'),
  otherTopic('access.accounts.v1', 'names and logins of portal users; removed with their accounts'),
  otherTopic('access.signable-keys.v1', 'addresses of the service, with sealed private keys'),
  otherTopic('access.audit.v1', 'actions of portal users, with the addresses of their requests'),
  otherTopic('chain.activities.v1', 'public addresses and events of a chain; not whose an address is'),
  otherTopic('chain.tokens.v1', 'public data of tokens'),
  otherTopic('chain.index-progress.v1', 'numbers and hashes of blocks'),
  otherTopic('chain.mint-requests.v1', MINTED),
  otherTopic('chain.mint-state.v1', MINTED),
  otherTopic('chain.mint-transactions.v1', 'public transactions'),
  otherTopic('chain.metadata.v1', 'public metadata of collections'),
].flat();

const byScript = (name: string, script: string): ErasureStore => ({ name, clearing: { by: 'script', script } });
const FORGOTTEN = 'the graph forgets the person';
const RELEASED = 'the hold is released at the end';

/** Families of Redis keys. Identities in them are keyed hashes. */
export const REDIS_STORES: readonly ErasureStore[] = [
  byScript('i:{env}:<bucket>', FORGOTTEN),
  byScript('m:{env}:<root>', FORGOTTEN),
  {
    name: 'f:{env}:<bucket>',
    clearing: { by: 'kept', reason: 'keyed hashes, without which erased data would return' },
  },
  withoutPersonalData('f:{env}', 'buckets that have a fence'),
  withoutPersonalData('f:complete', 'a run of Redis'),
  byScript('u:{env}', `${FORGOTTEN}; the time of the latest unlink is kept`),
  byScript('q:{env}', `${FORGOTTEN}; rulings of operators are kept, by keyed hash`),
  withoutPersonalData('d:{env}', 'offsets'),
  byScript('h:{env}', RELEASED),
  byScript('hl:{env}', RELEASED),
  byScript('hk:{env}', RELEASED),
  byScript('erasure:lapsing', `${RELEASED}; contains no identity`),
  byScript('c:{env}:<bucket>', 'the consents are forgotten'),
  withoutPersonalData('c:log:<consent topic>', 'offsets'),
  byScript('o:{env}', 'trimmed when the decisions are published, which the erasure waits for'),
  withoutPersonalData('identity:applied:<link topic>', 'offsets'),
  withoutPersonalData('identity:epoch', 'random'),
  withoutPersonalData('access:<kind>', 'projects, keys of projects and partners, accounts of portal users'),
  withoutPersonalData('access:<kind>:places', 'offsets'),
  withoutPersonalData('access:<kind>:changes', 'random ids of access records'),
  withoutPersonalData('access:<kind>:complete', 'a run of Redis'),
  withoutPersonalData('access:<kind>:turn', 'a running command'),
  withoutPersonalData('access:session:<hash>', 'portal users; expires within seven days'),
  withoutPersonalData('access:session:of:<account id>', 'hashes of sessions of portal users'),
  withoutPersonalData('access:one-time:<purpose>:<hash>', 'links and challenges of portal users'),
  withoutPersonalData('access:one-time:spent:<purpose>:<hash>', 'a form that was sent'),
  withoutPersonalData('access:one-time:attempts:<hash>', 'number of sign-in attempts; the login is hashed'),
  withoutPersonalData('access:usage:keys:<minute>', 'usage of project keys'),
  withoutPersonalData('access:usage:environments:<minute>', 'numbers of messages'),
  withoutPersonalData('access:usage:last-uses', 'times'),
  withoutPersonalData('access:usage:last-refusals', 'times, response codes and trace ids'),
  withoutPersonalData('chain:watermark', 'times'),
  withoutPersonalData('mint:claim:{chain:contract}:<project id>:<reference id>', 'a reference and its current attempt'),
  withoutPersonalData('mint:state:{chain:contract}:<project id>:<reference id>', MINTED),
  withoutPersonalData('mint:pending:<project id>', 'pending claims of a project'),
  withoutPersonalData('mint:settled:<project id>', 'recently settled claims of a project'),
  withoutPersonalData('mint:settled-bytes:<project id>', 'size of recently settled claims of a project'),
  withoutPersonalData('mint:floor:<project id>', 'time of a mint request of a project'),
  withoutPersonalData('mint:failed:<project id>', 'number of recently failed assets of a project'),
  withoutPersonalData('mint:cleaned:<project id>', 'recent removal of expired claims'),
  withoutPersonalData('mint:quota:<kind>:<project id>', 'number of minted assets of a project'),
  withoutPersonalData('mint:complete', 'a run of Redis'),
  withoutPersonalData('mint:places', 'offsets'),
  withoutPersonalData('rate:<id>', 'keys of projects; addresses of clients stay in the process'),
];

/** As `infra/clickhouse/system-logs.xml` sets it: as long as the log itself. */
const SYSTEM_LOG_WINDOW_MS = 78 * HOUR_MS;

const inSystemLog = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'ttl', windowMs: SYSTEM_LOG_WINDOW_MS, reason },
});
const inMemory = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'kept', reason: `in memory until restart or eviction: ${reason}` },
});

const QUERY_TEXTS = 'queries of services contain keys; queries of people may contain anything';

/** System tables with texts of queries or errors. Statements of erasures name no one: their keys are in a table. */
export const SYSTEM_STORES: readonly ErasureStore[] = [
  inSystemLog('query_log', QUERY_TEXTS),
  inSystemLog('part_log', 'names of parts; error texts'),
  inMemory('errors', 'the last text of each error'),
  inMemory('warnings', 'problems of the server'),
  inMemory('processes', QUERY_TEXTS),
  inMemory('query_cache', 'results, for a minute, of queries that request it'),
  inMemory('asynchronous_inserts', 'queued inserts, which Playline does not use'),
  inMemory('distributed_ddl_queue', 'statements that create and alter tables'),
  { name: 'mutations', clearing: { by: 'kept', reason: 'the last hundred mutations of a table, which name batches' } },
  withoutPersonalData('projections', 'queries of the schema'),
  withoutPersonalData('dashboards', 'queries that come with ClickHouse'),
];
