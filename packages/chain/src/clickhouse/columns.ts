import { MICROSECONDS_MAX } from '../position.ts';
import type { ActivityRow, TokenRow } from '../rows.ts';
import type { ChainTable, Supersession } from '../store.ts';
import { toMembersText } from '../wire.ts';
import { feedNamesOf } from './feed-names.ts';

/** A column of the JSON lines, and the expression that converts it to the column of the table. */
interface SentColumn<Row> {
  readonly name: string;
  readonly type: string;
  readonly as?: string;
  /** Name in the table, if it differs from that in the line. */
  readonly column?: string;
  readonly from: (row: Row) => unknown;
}

const hexOf = (text: string | null | undefined) => text?.slice(2) ?? null;
const micros = (name: string) => ({ name, type: 'Int64', as: `fromUnixTimestamp64Micro(${name}, 'UTC')` });
const bytes = (name: string) => ({ name, type: 'String', as: `unhex(${name})` });
const optionalBytes = (name: string) => ({ name, type: 'Nullable(String)', as: `unhex(${name})` });

const LOGGED: readonly SentColumn<Pick<ActivityRow, 'loggedAtMs' | 'partition' | 'offset' | 'traceId'>>[] = [
  { name: 'trace_id', type: 'String', from: ({ traceId }) => traceId },
  {
    ...{ name: 'logged_at', type: 'Int64', as: `fromUnixTimestamp64Milli(logged_at, 'UTC')` },
    from: ({ loggedAtMs }) => loggedAtMs,
  },
  { name: 'kafka_partition', type: 'UInt16', from: ({ partition }) => partition },
  { name: 'kafka_offset', type: 'UInt64', from: ({ offset }) => offset },
];

const VERSION: readonly SentColumn<ActivityRow>[] = [
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...micros('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytes('contract'), from: ({ contractAddress }) => hexOf(contractAddress) },
  { name: 'type', type: 'String', from: ({ type }) => type },
  { ...micros('indexed_at'), from: ({ indexedAt }) => indexedAt },
];

const number = (name: string) => ({ name, type: 'Nullable(UInt64)' });

const ACTIVITY: readonly SentColumn<ActivityRow>[] = [
  ...VERSION,
  {
    ...optionalBytes('transaction_hash'),
    from: ({ blockchainMetadata }) => hexOf(blockchainMetadata?.transactionHash),
  },
  { ...number('block_number'), from: ({ blockchainMetadata }) => blockchainMetadata?.blockNumber ?? null },
  { ...number('transaction_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.transactionIndex ?? null },
  { ...number('log_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.logIndex ?? null },
  { name: 'details', type: 'String', from: ({ details }) => details },
  ...LOGGED,
];

type Entry = ActivityRow | Supersession;
const isSupersession = (entry: Entry): entry is Supersession => 'supersededAt' in entry;

/** An entry is sent once. The insert makes a row of it for each of its feeds. */
const FEED_ENTRY: readonly SentColumn<Entry>[] = [
  { name: 'entry', type: 'String', from: (entry) => (isSupersession(entry) ? 'superseded' : 'version') },
  { name: 'feeds', type: 'Array(String)', as: 'feed', column: 'feed', from: feedNamesOf },
  { ...micros('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...micros('indexed_at'), from: ({ indexedAt }) => indexedAt },
  {
    ...{ name: 'kafka_partition', type: 'UInt16' },
    from: (entry) => (isSupersession(entry) ? 0 : entry.partition),
  },
  {
    ...micros('superseded_at'),
    from: (entry) => (isSupersession(entry) ? entry.supersededAt : MICROSECONDS_MAX),
  },
  {
    ...{ name: 'members', type: 'String' },
    from: (entry) => (isSupersession(entry) ? '' : toMembersText(entry)),
  },
];
const IN_EACH_FEED = 'ARRAY JOIN feeds AS feed';

const text = (name: string) => ({ name, type: 'Nullable(String)' });

const TOKEN: readonly SentColumn<TokenRow>[] = [
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytes('contract'), from: ({ contractAddress }) => hexOf(contractAddress) },
  { ...micros('updated_at'), from: ({ updatedAt }) => updatedAt },
  { ...optionalBytes('root_contract'), from: ({ rootContractAddress }) => hexOf(rootContractAddress) },
  { ...text('symbol'), from: ({ symbol }) => symbol },
  { name: 'decimals', type: 'Nullable(UInt8)', from: ({ decimals }) => decimals },
  { ...text('image_url'), from: ({ imageUrl }) => imageUrl },
  { ...text('name'), from: ({ name }) => name },
  { name: 'verification_status', type: 'String', from: ({ verificationStatus }) => verificationStatus },
  { name: 'is_canonical', type: 'Bool', from: ({ isCanonical }) => isCanonical },
  { ...text('root_chain_id'), from: ({ rootChainId }) => rootChainId },
  { ...text('bridge_used'), from: ({ bridgeUsed }) => bridgeUsed },
  ...LOGGED,
];

function toStatement<Row>(table: ChainTable, columns: readonly SentColumn<Row>[], times = ''): string {
  const names = columns.map(({ name, column = name }) => column).join(', ');
  const values = columns.map(({ name, as = name, column = name }) => `${as} AS ${column}`).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type}`).join(', ');
  return `INSERT INTO ${table} (${names}) SELECT ${values} FROM input('${structure}') ${times} FORMAT JSONEachRow`;
}

/**
 * Creates the encoder of inserts into one table: a statement, and one JSON line per row.
 * @param times an expression that makes several rows of one line
 */
function createSentTable<Row>(table: ChainTable, columns: readonly SentColumn<Row>[], times?: string) {
  return {
    statement: toStatement(table, columns, times),
    toLine: (row: Row) => JSON.stringify(Object.fromEntries(columns.map(({ name, from }) => [name, from(row)]))),
  };
}

export const SENT_TABLES = {
  activities: createSentTable('activities', ACTIVITY),
  activity_ids: createSentTable('activity_ids', VERSION),
  activity_feeds: createSentTable('activity_feeds', FEED_ENTRY, IN_EACH_FEED),
  tokens: createSentTable('tokens', TOKEN),
};
