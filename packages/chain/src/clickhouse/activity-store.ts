import type { ActivityConstants, ActivityRow } from '../rows.ts';
import type { ActivityStore } from '../store.ts';
import { SENT_TABLES } from './columns.ts';
import { type ClickHouseTarget, type Connection, openConnection } from './connection.ts';
import { toPositionsCondition, toUuidLiteral } from './literals.ts';

/** As other writers: longer than any healthy insert of a block; a connection for each partition that writes at a time. */
const LIMITS = { executionMaxS: 60, connectionsMax: 16 };
/** A question about more ids or rows than this would be a statement of megabytes. */
const ASKED_MAX = 10_000;

/** Opens the writer's side; connects with the first call. */
export function openActivityStore(target: ClickHouseTarget): ActivityStore {
  const connection = openConnection(target, LIMITS);
  return {
    async insert({ token, signal, ...block }) {
      const { statement } = SENT_TABLES[block.table];
      const lines =
        block.table === 'tokens'
          ? block.rows.map(SENT_TABLES.tokens.toLine)
          : block.rows.map(SENT_TABLES[block.table].toLine);
      await connection.insert(statement, lines, { token, signal });
    },
    async storedOffsets(rows) {
      const found = new Set<number>();
      for (const asked of inPieces(rows)) for (const offset of await readOffsets(connection, asked)) found.add(offset);
      return found;
    },
    async standing(ids) {
      const found = new Map<string, ActivityConstants>();
      for (const asked of inPieces(ids))
        for (const { uuid, ...constants } of await readStanding(connection, asked)) found.set(uuid, constants);
      return found;
    },
    ready: connection.ready,
    close: connection.close,
  };
}

function inPieces<T>(list: readonly T[]): T[][] {
  const pieces = Math.ceil(list.length / ASKED_MAX);
  return Array.from({ length: pieces }, (_, index) => list.slice(index * ASKED_MAX, (index + 1) * ASKED_MAX));
}

interface StoredPlace {
  readonly chain: string;
  readonly us: number;
  readonly uuid: string;
  readonly partition: number;
  readonly place: number;
}

/**
 * Partition and offset are in no index, so rows are found by their place in the order. A row of a log that was lost may
 * have the same offset: only a row that says the same is ours.
 */
async function readOffsets(connection: Connection, rows: readonly ActivityRow[]): Promise<number[]> {
  const chains = [...new Set(rows.map(({ chain }) => chain))];
  const found = await connection.read<StoredPlace>(
    `SELECT chain, toUnixTimestamp64Micro(updated_at) AS us, toString(id) AS uuid, kafka_partition AS partition, ` +
      `kafka_offset AS place FROM activities WHERE chain IN {chains: Array(String)} AND ${toPositionsCondition(rows)}`,
    { params: { chains }, settings: { optimize_use_projections: 0 } },
  );
  const nameOf = ({ chain, us, uuid, partition, place }: StoredPlace) => `${chain} ${us} ${uuid} ${partition} ${place}`;
  const standing = new Set(found.map(nameOf));
  return rows
    .filter((row) => standing.has(nameOf({ ...row, us: row.updatedAt, uuid: row.id, place: row.offset })))
    .map(({ offset }) => offset);
}

/** An alias must not hide the column that the index is about. */
interface StandingActivity extends ActivityConstants {
  readonly uuid: string;
}

function readStanding(connection: Connection, ids: readonly string[]): Promise<StandingActivity[]> {
  return connection.read<StandingActivity>(
    `SELECT toString(id) AS uuid, any(chain) AS chain, any(type) AS type, ` +
      `concat('0x', lower(hex(any(contract)))) AS contractAddress, ` +
      `toUnixTimestamp64Micro(any(indexed_at)) AS indexedAt ` +
      `FROM activity_versions WHERE id IN (${ids.map(toUuidLiteral).join(', ')}) GROUP BY id`,
  );
}
