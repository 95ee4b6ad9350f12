import type { ClickHouseSettings } from '@clickhouse/client';
import { createReadPage, type VersionSource } from '../page.ts';
import type { Position } from '../position.ts';
import type { ActivityRow, TokenRow } from '../rows.ts';
import type { ChainStore, PageQuestion } from '../store.ts';
import { type ClickHouseTarget, type Connection, openConnection } from './connection.ts';
import { toTimeLiteral, toTimesCondition, toUuidLiteral } from './literals.ts';
import { createReadPositions } from './positions.ts';

/** A page reads some thousand rows: what takes longer is a server that does not answer. */
const LIMITS = { executionMaxS: 10, connectionsMax: 32 };
/** Rows are found where they stand in the table's own order. */
const BY_TABLE: ClickHouseSettings = { optimize_use_projections: 0, max_threads: 1 };

/** Opens the readers' side; connects with the first call. Needs to read, and to set limits of a question. */
export function openChainStore(target: ClickHouseTarget): ChainStore {
  const connection = openConnection(target, LIMITS);
  const source = createVersionSource(connection);
  return {
    readPage: createReadPage(source),
    readActivities: createReadActivities(connection, source),
    async readToken(chain, contractAddress) {
      const [row] = await connection.read<TokenRow>(
        `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE chain = {chain: String} ` +
          'AND contract = toFixedString(unhex({contract: String}), 20) ORDER BY updated_at DESC LIMIT 1',
        { params: { chain, contract: contractAddress.slice(2) } },
      );
      return row ?? null;
    },
    ready: connection.ready,
    close: connection.close,
  };
}

function createVersionSource(connection: Connection): VersionSource {
  return {
    positions: createReadPositions(connection),
    async latest({ chain, horizon }: PageQuestion, versions) {
      if (versions.length === 0) return new Map();
      const ids = new Set(versions.map(({ id }) => id));
      // Ids alone would be looked up in as many granules of every part; those of a page were indexed near each other.
      const rows = await connection.read<{ name: string; us: number }>(
        'SELECT toString(id) AS name, toUnixTimestamp64Micro(max(updated_at)) AS us FROM activity_versions ' +
          `WHERE chain = {chain: String} AND ${toTimesCondition(
            'indexed_at',
            versions.map(({ indexedAt }) => indexedAt),
          )} ` +
          `AND id IN (${[...ids].map(toUuidLiteral).join(', ')}) AND updated_at < ${toTimeLiteral(horizon)} GROUP BY id`,
        { params: { chain }, settings: BY_TABLE },
      );
      return new Map(rows.map(({ name, us }) => [name, us]));
    },
    async rows(chain, positions: readonly Position[]) {
      const query = `SELECT ${ACTIVITY_COLUMNS} FROM activities WHERE chain = {chain: String} AND ${toTimesCondition(
        'updated_at',
        positions.map(({ updatedAt }) => updatedAt),
      )}`;
      const rows = await connection.read<StoredActivity>(query, { params: { chain }, settings: BY_TABLE });
      return rows.map(toActivity);
    },
  };
}

function createReadActivities(connection: Connection, { rows }: VersionSource): ChainStore['readActivities'] {
  return async (ids) => {
    if (ids.length === 0) return [];
    const latest = await connection.read<{ chain: string; uuid: string; us: number }>(
      'SELECT chain, toString(id) AS uuid, toUnixTimestamp64Micro(max(updated_at)) AS us FROM activity_versions ' +
        `WHERE id IN (${ids.map(toUuidLiteral).join(', ')}) GROUP BY chain, id`,
    );
    const found: ActivityRow[] = [];
    for (const [chain, versions] of Map.groupBy(latest, (version) => version.chain)) {
      const wanted = new Map(versions.map(({ uuid, us }) => [uuid, us]));
      const positions = versions.map(({ uuid, us }) => ({ id: uuid, updatedAt: us }));
      // Copies of one version may stand until they are folded.
      const read = (await rows(chain, positions)).filter(({ id, updatedAt }) => wanted.get(id) === updatedAt);
      found.push(...new Map(read.map((row) => [row.id, row])).values());
    }
    return found;
  };
}

const toAddress = (column: string) => `concat('0x', lower(hex(${column})))`;
const LOGGED_COLUMNS =
  'toUnixTimestamp64Micro(updated_at) AS updatedAt, trace_id AS traceId, ' +
  'toUnixTimestamp64Milli(logged_at) AS loggedAtMs, kafka_partition AS partition, kafka_offset AS offset';
const ACTIVITY_COLUMNS =
  `chain, toString(id) AS uuid, type, ${toAddress('contract')} AS contractAddress, ` +
  `toUnixTimestamp64Micro(indexed_at) AS indexedAt, ${toAddress('transaction_hash')} AS transactionHash, ` +
  'toString(block_number) AS blockNumber, toString(transaction_index) AS transactionIndex, ' +
  `toString(log_index) AS logIndex, details, ${LOGGED_COLUMNS}`;
const TOKEN_COLUMNS =
  `chain, ${toAddress('contract')} AS contractAddress, ${toAddress('root_contract')} AS rootContractAddress, ` +
  'symbol, decimals, image_url AS imageUrl, name, verification_status AS verificationStatus, ' +
  `is_canonical AS isCanonical, root_chain_id AS rootChainId, bridge_used AS bridgeUsed, ${LOGGED_COLUMNS}`;

/** An alias must not hide the column that the index is about, hence `uuid`. */
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
