/** A column with the key of another person in somebody's row, and the texts that say the same as the key. */
export interface CarriedKey {
  /** Column of the key; blanked to zero bytes. */
  readonly key: string;
  /** Columns blanked to the empty text with it. */
  readonly texts: readonly string[];
}

/** How rows of a table are found by the keys of erased people. */
export interface Sweep {
  readonly by: 'sweep';
  /** Key columns that make a row the erased person's own, or a statement about that person: the row is deleted. */
  readonly own: readonly string[];
  /**
   * Key columns that name the erased person in somebody else's row: only they are blanked. None is part of the sorting
   * key.
   */
  readonly carried: readonly CarriedKey[];
  /** Times of a row. It is erased when the earliest of them is not later than the cut-off: the rule of fences. */
  readonly times: readonly string[];
  /** Rows with one of these values in this column are about nobody, and stay. */
  readonly kept?: { readonly column: string; readonly values: readonly string[] };
}

/** A table derived from `events`: its rows are deleted by identity, and derived again from the events that stay. */
export interface Derivation {
  readonly by: 'derived';
  /** The parameterised view, of `since` and `until`, that says what the table has to hold for the events of a span. */
  readonly view: string;
  /**
   * By what its rows are compared with events; the first two are `environment_id` and `identity_key`. Without `test`: copies
   * of one message may differ in it, and which of them a merge has left says nothing of a row.
   */
  readonly keys: readonly string[];
  /** What else a row says, as expressions that fold the rows of one key which no merge has folded yet. */
  readonly values: readonly string[];
}

/** How data about a person leaves a place. */
export type Clearing =
  | Sweep
  | Derivation
  /** Deleted by key, by the scripts that own the layout. */
  | { readonly by: 'script'; readonly script: string }
  /** Disappears by itself within this time. */
  | { readonly by: 'ttl'; readonly windowMs: number; readonly reason: string }
  /** Is kept on purpose. */
  | { readonly by: 'kept'; readonly reason: string }
  | { readonly by: 'no personal data'; readonly reason: string };

/** A topic of Kafka, by its name without a prefix, or a family of Redis keys as `infra/redis/README.md` writes it. */
export interface ErasureStore {
  readonly name: string;
  readonly clearing: Clearing;
}

/** A table of ClickHouse. */
export interface TableStore extends ErasureStore {
  /**
   * Columns that somebody has looked at, each with what it needs. Of a swept table those that look like identities and
   * are not named by the sweep, as its other columns go with the row; of any other table all columns.
   */
  readonly columns: Readonly<Record<string, string>>;
  /** Columns that operators may add, by the beginning of their names; each is treated alike. */
  readonly prefixes?: Readonly<Record<string, string>>;
}

export interface DerivedTable extends TableStore {
  readonly clearing: Derivation;
}

export interface SweptTable extends TableStore {
  readonly clearing: Sweep;
}

/** Words and clearings that several lists of places have in common. */

export const WITH_ROW = 'goes with the row';
export const TIME = 'a time';
export const COUNT = 'a number';
export const ADDRESS =
  'public on the chain; whose it is, where that is known, is said by identities and events, and erased there';

/** A place that says nothing of anybody. */
export const withoutPersonalData = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'no personal data', reason },
});

/** A place whose data disappear by themselves. */
export const expiring =
  (windowMs: number) =>
  (name: string, reason: string): ErasureStore => ({
    name,
    clearing: { by: 'ttl', windowMs, reason },
  });

const HOUR_MS = 60 * 60 * 1000;
/** 72 hours after the last record of a segment, which is filled for six hours. */
export const IDENTITY_WINDOW_MS = 78 * HOUR_MS;
/**
 * From when the fences stood and the log was stored until it holds nothing of a person: what a gateway publishes late comes
 * within 20 seconds, and brokers look for what has expired every five minutes.
 */
export const LOG_EXPIRES_AFTER_MS = IDENTITY_WINDOW_MS + HOUR_MS / 6;
/** Seven days, in the same way. */
const ERASURES_WINDOW_MS = (7 * 24 + 6) * HOUR_MS;

const inTopic = expiring(IDENTITY_WINDOW_MS);
const deadLetters = (reason: string) => `records as they were, also ones that nobody can read: ${reason}`;
/** What waits is written anew every day, so the window begins when the last erasure that it waits for has ended. */
const PARKED = 'ids that belong together, received behind the cut-off of an erasure that their links wait for';

/** What everybody can read on the chain itself. That an address is the id of a person is said, and erased, elsewhere. */
const OF_A_CHAIN = 'public addresses and events of a chain; nothing that says whose an address is';
const ofChain = (name: string, reason = OF_A_CHAIN): ErasureStore => withoutPersonalData(name, reason);

const MINTED = 'what a team mints for which public address; nothing that says whose an address is';

/** Topics about who may use the service. The only people they name are operators' accounts. */
const ofAccess = withoutPersonalData;

/** Topics, those of dead letters included. */
export const TOPIC_STORES: readonly ErasureStore[] = [
  inTopic('audience.messages.v1', 'messages with their ids'),
  inTopic('audience.messages.v1.dead', deadLetters('messages with their ids')),
  inTopic('audience.identity-links.v1', 'ids that belong together'),
  inTopic('audience.identity-links.v1.dead', deadLetters('ids that belong together')),
  inTopic('audience.identity-links.v1.parked', PARKED),
  inTopic('audience.identity-links.v1.parked.dead', deadLetters(PARKED)),
  inTopic('audience.identity-decisions.v1', 'keyed hashes of identities'),
  inTopic('audience.identity-decisions.v1.dead', deadLetters('keyed hashes of identities')),
  inTopic('audience.rejections.v1', 'names of our contract'),
  inTopic('audience.rejections.v1.dead', deadLetters('text of clients')),
  inTopic('audience.consents.v1', 'keyed hashes of identities and what they chose'),
  inTopic('audience.consents.v1.dead', deadLetters('keyed hashes of identities and what they chose')),
  {
    name: 'audience.erasures.v1',
    clearing: {
      by: 'ttl',
      windowMs: ERASURES_WINDOW_MS,
      reason: 'keyed hashes of the erased, so that they are erased',
    },
  },
  {
    name: 'audience.erasures.v1.dead',
    clearing: { by: 'ttl', windowMs: ERASURES_WINDOW_MS, reason: deadLetters('keyed hashes of the erased') },
  },
  ofAccess('access.keys.v1', 'keys of projects, as hashes'),
  ofAccess('access.keys.v1.dead', 'keys of projects, as hashes'),
  ofAccess('access.projects.v1', 'names of projects and their environments'),
  ofAccess('access.projects.v1.dead', 'names of projects and their environments'),
  ofAccess('access.rate-limit-keys.v1', 'keys of partners, as hashes'),
  ofAccess('access.rate-limit-keys.v1.dead', 'keys of partners, as hashes'),
  ofAccess('access.collections.v1', 'contracts that projects have linked'),
  ofAccess('access.collections.v1.dead', 'contracts that projects have linked'),
  ofAccess('access.accounts.v1', 'names and logins of people who sign in to the portal; removed with their accounts'),
  ofAccess('access.accounts.v1.dead', 'names and logins of people who sign in to the portal'),
  ofAccess('access.signable-keys.v1', 'addresses of the service itself, with sealed private keys'),
  ofAccess('access.signable-keys.v1.dead', 'addresses of the service itself, with sealed private keys'),
  ofAccess('access.audit.v1', 'what people who sign in to the portal did, with the addresses of their requests'),
  ofAccess('access.audit.v1.dead', 'what people who sign in to the portal did'),
  ofChain('chain.activities.v1'),
  ofChain('chain.activities.v1.dead'),
  ofChain('chain.tokens.v1', 'what everybody can read about a token'),
  ofChain('chain.tokens.v1.dead', 'what everybody can read about a token'),
  ofChain('chain.index-progress.v1', 'numbers and hashes of blocks'),
  ofChain('chain.index-progress.v1.dead', 'numbers and hashes of blocks'),
  ofChain('chain.mint-requests.v1', MINTED),
  ofChain('chain.mint-requests.v1.dead', MINTED),
  ofChain('chain.mint-state.v1', MINTED),
  ofChain('chain.mint-state.v1.dead', MINTED),
  ofChain('chain.mint-transactions.v1', 'transactions as everybody can read them on their chain'),
  ofChain('chain.mint-transactions.v1.dead', 'transactions as everybody can read them on their chain'),
  ofChain('chain.metadata.v1', 'what a team tells the public of its collections'),
  ofChain('chain.metadata.v1.dead', 'what a team tells the public of its collections'),
];

const byScript = (name: string, script: string): ErasureStore => ({ name, clearing: { by: 'script', script } });

/** Families of Redis keys, written as in `infra/redis/README.md`. No raw id stands in any: identities are keyed hashes. */
export const REDIS_STORES: readonly ErasureStore[] = [
  byScript('i:{env}:<bucket>', 'the graph takes the person out'),
  byScript('m:{env}:<root>', 'the graph takes the person out'),
  {
    name: 'f:{env}:<bucket>',
    clearing: { by: 'kept', reason: 'without it what was erased would come back; keyed hashes only' },
  },
  withoutPersonalData('f:{env}', 'says which buckets have a fence'),
  withoutPersonalData('f:complete', 'a run of Redis'),
  byScript('u:{env}', 'the graph takes the person out; what is left is the time of the latest unlink'),
  byScript('q:{env}', 'the graph takes the person out; rulings of operators are kept, by keyed hashes'),
  withoutPersonalData('d:{env}', 'places in the log'),
  byScript('h:{env}', 'the hold is released at the end'),
  byScript('hl:{env}', 'the hold is released at the end'),
  byScript('hk:{env}', 'the hold is released at the end'),
  byScript('erasure:lapsing', 'the hold is released at the end; holds no identity'),
  byScript('c:{env}:<bucket>', 'the consents forget the person'),
  withoutPersonalData('c:log:<consent topic>', 'places in the log'),
  byScript('o:{env}', 'trimmed when the decisions are published, which the erasure waits for'),
  withoutPersonalData('identity:applied:<link topic>', 'places in the log'),
  withoutPersonalData('identity:epoch', 'random'),
  withoutPersonalData(
    'access:<kind>',
    'projects, keys of projects and partners; of people the accounts of operators alone',
  ),
  withoutPersonalData('access:<kind>:places', 'places in the log'),
  withoutPersonalData('access:<kind>:changes', 'ids of records of access; random'),
  withoutPersonalData('access:<kind>:complete', 'a run of Redis'),
  withoutPersonalData('access:<kind>:turn', 'a command that runs'),
  withoutPersonalData(
    'access:session:<hash>',
    'people who sign in to the portal, never players; ends by itself within seven days',
  ),
  withoutPersonalData('access:session:of:<account id>', 'hashes of sessions of people who sign in to the portal'),
  withoutPersonalData('access:one-time:<purpose>:<hash>', 'links and challenges of people who sign in to the portal'),
  withoutPersonalData('access:one-time:spent:<purpose>:<hash>', 'that a form was sent'),
  withoutPersonalData('access:one-time:attempts:<hash>', 'how often somebody tried to sign in; the login is hashed'),
  withoutPersonalData('access:usage:keys:<minute>', 'how often keys of projects are used'),
  withoutPersonalData('access:usage:environments:<minute>', 'how many messages came'),
  withoutPersonalData('access:usage:last-uses', 'times'),
  withoutPersonalData('access:usage:last-refusals', 'times, codes of answers and trace ids'),
  withoutPersonalData('chain:watermark', 'times'),
  withoutPersonalData(
    'mint:claim:{chain:contract}:<project id>:<reference id>',
    'what a team calls an asset, and which attempt stands',
  ),
  withoutPersonalData(
    'mint:state:{chain:contract}:<project id>:<reference id>',
    'what a team mints for which public address',
  ),
  withoutPersonalData('mint:pending:<project id>', 'which claims of a project are pending'),
  withoutPersonalData('mint:settled:<project id>', 'which claims of a project were settled last'),
  withoutPersonalData('mint:settled-bytes:<project id>', 'the size of the claims of a project that were settled last'),
  withoutPersonalData('mint:floor:<project id>', 'the time of a mint request of a project'),
  withoutPersonalData('mint:failed:<project id>', 'how many assets of a project failed of late'),
  withoutPersonalData('mint:cleaned:<project id>', 'that expired claims were removed within a minute'),
  withoutPersonalData('mint:quota:<kind>:<project id>', 'how much a project has minted'),
  withoutPersonalData('mint:complete', 'a run of Redis'),
  withoutPersonalData('mint:places', 'places in the log'),
  withoutPersonalData('rate:<id>', 'keys of projects; addresses of clients stay in the process'),
];

/** As infra/clickhouse/system-logs.xml says: as long as the log itself, for whoever looks for a cause. */
const SYSTEM_LOG_WINDOW_MS = 78 * HOUR_MS;

const inSystemLog = expiring(SYSTEM_LOG_WINDOW_MS);
const inMemory = (name: string, reason: string): ErasureStore => ({
  name,
  clearing: { by: 'kept', reason: `in memory, gone with the process or pushed out: ${reason}` },
});

const QUERY_TEXTS = 'what services ask names keys in its text; what people ask may name anything';

/**
 * Tables of the engine itself that keep texts of queries, or words of errors that may quote a row. Erasures name nobody
 * in a statement: their lists stand in a table.
 */
export const SYSTEM_STORES: readonly ErasureStore[] = [
  inSystemLog('query_log', QUERY_TEXTS),
  inSystemLog('part_log', 'names of parts; words of errors'),
  inMemory('errors', 'the last words of each error'),
  inMemory('warnings', 'what is wrong with the server'),
  inMemory('processes', QUERY_TEXTS),
  inMemory('query_cache', 'answers, for a minute, for whoever asks for it'),
  inMemory('asynchronous_inserts', 'statements of inserts that are queued: ours never are'),
  inMemory('distributed_ddl_queue', 'statements that make and change tables'),
  {
    name: 'mutations',
    clearing: { by: 'kept', reason: 'statements of ours, which name batches; the last hundred of a table' },
  },
  withoutPersonalData('projections', 'queries of tables, of ours'),
  withoutPersonalData('dashboards', 'queries that come with the engine'),
];
