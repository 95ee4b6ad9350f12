import { bytesColumn, createSentTable, digitsOf, microsColumn, millisColumn, type RowColumn } from '@playline/stores';
import {
  BLOCK_WRITER_LIMITS,
  type ClickHouse,
  type ClickHouseTarget,
  openClickHouse,
} from '@playline/stores/clickhouse';
import { MICROSECONDS_MAX } from '../cursor.ts';
import { createReadPage } from '../page.ts';
import type { ActivityConstants, ActivityRow, TokenRow } from '../rows.ts';
import type { ActivityStore, ChainInsert, ChainStore, Supersession } from '../store.ts';
import { toMembersText } from '../wire.ts';
import { createReadEntries } from './feed-entries.ts';
import { feedNamesOf, toTimeLiteral, toTimesCondition, toUuidLiteral } from './literals.ts';
import { openQueryClient } from './query-client.ts';

const toAddress = (column: string): string => `concat('0x', lower(hex(${column})))`;

const LOGGED_COLUMNS =
  'toUnixTimestamp64Micro(updated_at) AS updatedAt, trace_id AS traceId, ' +
  'toUnixTimestamp64Milli(logged_at) AS loggedAtMs, kafka_partition AS partition, kafka_offset AS offset';

const ACTIVITY_COLUMNS: string =
  `chain, toString(id) AS uuid, type, ${toAddress('contract')} AS contractAddress, ` +
  `toUnixTimestamp64Micro(indexed_at) AS indexedAt, ${toAddress('transaction_hash')} AS transactionHash, ` +
  'toString(block_number) AS blockNumber, toString(transaction_index) AS transactionIndex, ' +
  `toString(log_index) AS logIndex, details, ${LOGGED_COLUMNS}`;

/** The id is selected as `uuid`, because ClickHouse would substitute an alias `id` in conditions. */
interface StoredActivity extends Omit<ActivityRow, 'blockchainMetadata' | 'id'> {
  readonly uuid: string;
  readonly transactionHash: string | null;
  readonly blockNumber: string | null;
  readonly transactionIndex: string | null;
  readonly logIndex: string | null;
}

function toActivity(stored: StoredActivity): ActivityRow {
  const { uuid, transactionHash, blockNumber, transactionIndex, logIndex, ...rest } = stored;
  const row = { ...rest, id: uuid };
  if (transactionHash === null || blockNumber === null || transactionIndex === null)
    return { ...row, blockchainMetadata: null };
  return { ...row, blockchainMetadata: { transactionHash, blockNumber, transactionIndex, logIndex } };
}

const optionalBytes = (name: string) => ({ name, type: 'Nullable(String)', as: `unhex(${name})` });

const LOGGED: readonly RowColumn<Pick<ActivityRow, 'loggedAtMs' | 'partition' | 'offset' | 'traceId'>>[] = [
  { name: 'trace_id', type: 'String', from: ({ traceId }) => traceId },
  { ...millisColumn('logged_at'), from: ({ loggedAtMs }) => loggedAtMs },
  { name: 'kafka_partition', type: 'UInt16', from: ({ partition }) => partition },
  { name: 'kafka_offset', type: 'UInt64', from: ({ offset }) => offset },
];

const VERSION: readonly RowColumn<ActivityRow>[] = [
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytesColumn('contract'), from: ({ contractAddress }) => digitsOf(contractAddress) },
  { name: 'type', type: 'String', from: ({ type }) => type },
  { ...microsColumn('indexed_at'), from: ({ indexedAt }) => indexedAt },
];

const number = (name: string) => ({ name, type: 'Nullable(UInt64)' });

const ACTIVITY: readonly RowColumn<ActivityRow>[] = [
  ...VERSION,
  {
    ...optionalBytes('transaction_hash'),
    from: ({ blockchainMetadata }) => digitsOf(blockchainMetadata?.transactionHash),
  },
  { ...number('block_number'), from: ({ blockchainMetadata }) => blockchainMetadata?.blockNumber ?? null },
  { ...number('transaction_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.transactionIndex ?? null },
  { ...number('log_index'), from: ({ blockchainMetadata }) => blockchainMetadata?.logIndex ?? null },
  { name: 'details', type: 'String', from: ({ details }) => details },
  ...LOGGED,
];

type Entry = ActivityRow | Supersession;
const isSupersession = (entry: Entry): entry is Supersession => 'supersededAt' in entry;

/** Each entry is sent once; the INSERT statement creates one row per feed. */
const FEED_ENTRY: readonly RowColumn<Entry>[] = [
  { name: 'entry', type: 'String', from: (entry) => (isSupersession(entry) ? 'superseded' : 'version') },
  { name: 'feeds', type: 'Array(String)', as: 'feed', column: 'feed', from: feedNamesOf },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { name: 'id', type: 'UUID', from: ({ id }) => id },
  { ...microsColumn('indexed_at'), from: ({ indexedAt }) => indexedAt },
  { name: 'kafka_partition', type: 'UInt16', from: (entry) => (isSupersession(entry) ? 0 : entry.partition) },
  {
    ...microsColumn('superseded_at'),
    from: (entry) => (isSupersession(entry) ? entry.supersededAt : MICROSECONDS_MAX),
  },
  { name: 'members', type: 'String', from: (entry) => (isSupersession(entry) ? '' : toMembersText(entry)) },
];
const FEEDS_JOIN = 'ARRAY JOIN feeds AS feed';

const text = (name: string) => ({ name, type: 'Nullable(String)' });

const TOKEN: readonly RowColumn<TokenRow>[] = [
  { name: 'chain', type: 'String', from: ({ chain }) => chain },
  { ...bytesColumn('contract'), from: ({ contractAddress }) => digitsOf(contractAddress) },
  { ...microsColumn('updated_at'), from: ({ updatedAt }) => updatedAt },
  { ...optionalBytes('root_contract'), from: ({ rootContractAddress }) => digitsOf(rootContractAddress) },
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

const SENT_TABLES = {
  activities: createSentTable('activities', ACTIVITY),
  activity_ids: createSentTable('activity_ids', VERSION),
  activity_feeds: createSentTable('activity_feeds', FEED_ENTRY, FEEDS_JOIN),
  tokens: createSentTable('tokens', TOKEN),
};

/** With more ids, the query would be several megabytes long. */
const IDS_PER_QUERY_MAX = 10_000;

/** Opens the store for the writer. Connects on the first call. */
export function openActivityStore(target: ClickHouseTarget): ActivityStore {
  const connection = openClickHouse(target, BLOCK_WRITER_LIMITS);
  return {
    async insert({ token, signal, ...block }) {
      await connection.insertBlock({
        statement: SENT_TABLES[block.table].statement,
        body: toLines(block).join('\n'),
        token,
        signal,
        // Retains duplicates until a merge. Otherwise `storedOffsets` would miss some of the block's offsets.
        settings: { optimize_on_insert: 0 },
      });
    },
    async storedOffsets(rows) {
      const found = new Set<number>();
      for (const chunk of toChunks(rows)) for (const offset of await readOffsets(connection, chunk)) found.add(offset);
      return found;
    },
    async constantsOf(ids) {
      const found = new Map<string, ActivityConstants>();
      for (const chunk of toChunks(ids))
        for (const { uuid, ...constants } of await readConstants(connection, chunk)) found.set(uuid, constants);
      return found;
    },
    async rowsBetween(partition, after, end) {
      const rows = await connection.read<StoredActivity>(
        `SELECT ${ACTIVITY_COLUMNS} FROM activities WHERE kafka_partition = {partition: UInt16} ` +
          `AND activities.updated_at > ${toTimeLiteral(after)} AND activities.updated_at <= ${toTimeLiteral(end)}`,
        { partition },
      );
      return rows.map(toActivity);
    },
    async lastBefore(us, chain, ids) {
      const found = new Map<string, number>();
      for (const chunk of toChunks(ids))
        for (const { uuid, last } of await readLastBefore(connection, { us, chain, ids: chunk })) found.set(uuid, last);
      return found;
    },
    ready: connection.ready,
    close: connection.close,
  };
}

function toLines(block: Pick<ChainInsert, 'table' | 'rows'>): string[] {
  const insert = block as ChainInsert;
  if (insert.table === 'tokens') return insert.rows.map(SENT_TABLES.tokens.toLine);
  if (insert.table === 'activity_feeds') return insert.rows.map(SENT_TABLES.activity_feeds.toLine);
  return insert.rows.map(SENT_TABLES[insert.table].toLine);
}

function toChunks<T>(list: readonly T[]): T[][] {
  const chunks = Math.ceil(list.length / IDS_PER_QUERY_MAX);
  return Array.from({ length: chunks }, (_, index) =>
    list.slice(index * IDS_PER_QUERY_MAX, (index + 1) * IDS_PER_QUERY_MAX),
  );
}

interface StoredOffset {
  readonly chain: string;
  readonly us: number;
  readonly uuid: string;
  readonly partition: number;
  readonly offset: number;
}

/** Matches rows by sort key and content: offsets are not indexed, and a lost log may have used the same offsets. */
async function readOffsets(connection: ClickHouse, rows: readonly ActivityRow[]): Promise<number[]> {
  const chains = [...new Set(rows.map(({ chain }) => chain))];
  const found = await connection.read<StoredOffset>(
    `SELECT chain, toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS uuid, kafka_partition AS partition, ` +
      `kafka_offset AS offset FROM activities WHERE chain IN {chains: Array(String)} AND ${toTimesCondition(
        rows.map(({ updatedAt }) => updatedAt),
      )}`,
    { chains },
    { optimize_use_projections: 0 },
  );
  const nameOf = ({ chain, us, uuid, partition, offset }: StoredOffset) =>
    `${chain} ${us} ${uuid} ${partition} ${offset}`;
  const stored = new Set(found.map(nameOf));
  return rows
    .filter((row) => stored.has(nameOf({ ...row, us: row.updatedAt, uuid: row.id, offset: row.offset })))
    .map(({ offset }) => offset);
}

interface StoredConstants extends ActivityConstants {
  readonly uuid: string;
}

function readLastBefore(
  connection: ClickHouse,
  { us, chain, ids }: { us: number; chain: string; ids: readonly string[] },
): Promise<{ uuid: string; last: number }[]> {
  return connection.read(
    'SELECT toString(id) AS uuid, toUnixTimestamp64Micro(max(updated_at)) AS last FROM activity_ids ' +
      `WHERE chain = {chain: String} AND id IN (${ids.map(toUuidLiteral).join(', ')}) ` +
      `AND updated_at < ${toTimeLiteral(us)} GROUP BY id`,
    { chain },
    { preferred_optimize_projection_name: 'of_id' },
  );
}

/** Reads all members from one row, because mixing two rows would produce an activity that was never written. */
function readConstants(connection: ClickHouse, ids: readonly string[]): Promise<StoredConstants[]> {
  const selectFirst = (expression: string, name: string) =>
    `argMin(${expression}, (updated_at, activity_ids.chain)) AS ${name}`;
  const members = [
    selectFirst('activity_ids.chain', 'chain'),
    selectFirst('activity_ids.type', 'type'),
    selectFirst("concat('0x', lower(hex(contract)))", 'contractAddress'),
    selectFirst('toUnixTimestamp64Micro(indexed_at)', 'indexedAt'),
  ];
  return connection.read<StoredConstants>(
    `SELECT toString(id) AS uuid, ${members.join(', ')} FROM activity_ids ` +
      `WHERE id IN (${ids.map(toUuidLiteral).join(', ')}) GROUP BY id`,
    {},
    { preferred_optimize_projection_name: 'of_id' },
  );
}

const LIMITS = { executionMaxS: 10, connectionsMax: 32 };

/** Opens the store for readers. Connects on the first call. */
export function openChainStore(target: ClickHouseTarget): ChainStore {
  const connection = openClickHouse(target, LIMITS);
  const queries = openQueryClient(target, LIMITS);
  return {
    readPage: createReadPage({ entries: createReadEntries(queries) }),
    readActivities: createReadActivities(connection),
    async readToken(chain, contractAddress) {
      const [row] = await connection.read<TokenRow>(
        `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE chain = {chain: String} ` +
          'AND contract = toFixedString(unhex({contract: String}), 20) ORDER BY updated_at DESC LIMIT 1',
        { chain, contract: contractAddress.slice(2) },
      );
      return row ?? null;
    },
    async findToken(chains) {
      const [row] = await connection.read<TokenRow>(
        `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE chain IN {chains: Array(String)} ORDER BY updated_at DESC LIMIT 1`,
        { chains },
      );
      return row ?? null;
    },
    ready: connection.ready,
    async close() {
      queries.close();
      await connection.close();
    },
  };
}

function createReadActivities(connection: ClickHouse): ChainStore['readActivities'] {
  return async (ids) => {
    if (ids.length === 0) return [];
    const latest = await connection.read<{ chain: string; uuid: string; us: number }>(
      'SELECT chain, toString(id) AS uuid, toUnixTimestamp64Micro(max(updated_at)) AS us FROM activity_ids ' +
        `WHERE id IN (${ids.map(toUuidLiteral).join(', ')}) GROUP BY chain, id`,
    );
    const found: ActivityRow[] = [];
    for (const [chain, versions] of Map.groupBy(latest, (version) => version.chain)) {
      const latestTimes = new Map(versions.map(({ uuid, us }) => [uuid, us]));
      const rows = await connection.read<StoredActivity>(
        `SELECT ${ACTIVITY_COLUMNS} FROM activities WHERE chain = {chain: String} AND ${toTimesCondition(
          versions.map(({ us }) => us),
        )}`,
        { chain },
        { optimize_use_projections: 0, max_threads: 1 },
      );
      // Duplicates of a version remain until a merge.
      const read = rows.map(toActivity).filter(({ id, updatedAt }) => latestTimes.get(id) === updatedAt);
      for (const each of new Map(read.map((row) => [row.id, row])).values()) found.push(each);
    }
    return found;
  };
}

const TOKEN_COLUMNS =
  `chain, ${toAddress('contract')} AS contractAddress, ${toAddress('root_contract')} AS rootContractAddress, ` +
  'symbol, decimals, image_url AS imageUrl, name, verification_status AS verificationStatus, ' +
  `is_canonical AS isCanonical, root_chain_id AS rootChainId, bridge_used AS bridgeUsed, ${LOGGED_COLUMNS}`;
