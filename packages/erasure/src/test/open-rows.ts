import type { ClickHouseTarget } from '@playline/stores/clickhouse';
import { openOwnDatabase } from '@playline/testkit';
import { openErasureRows } from '../clickhouse/index.ts';
import type { ErasureRows } from '../rows.ts';
import { type MemoryRow, openMemoryErasureRows } from './memory/rows.ts';

export interface RowsHarness {
  readonly rows: ErasureRows;
  add(table: string, row: MemoryRow): Promise<void>;
  /** Reads columns of an environment's rows in any order, with keys in hexadecimal. */
  read(table: string, environmentId: string, columns: readonly string[]): Promise<string[][]>;
  close(): Promise<void>;
}

export async function openMemoryHarness(): Promise<RowsHarness> {
  const rows = openMemoryErasureRows();
  const show = (value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value));
  return {
    rows,
    add: async (table, row) => rows.add(table, row),
    read: async (table, environmentId, columns) =>
      rows
        .rowsOf(table)
        .filter(({ environment_id }) => environment_id === environmentId)
        .map((row) => columns.map((column) => show(row[column]))),
    close: async () => {},
  };
}

export interface ClickHouseHarness extends RowsHarness {
  readonly target: ClickHouseTarget;
  query(sql: string): Promise<string>;
}

export async function openClickHouseHarness(options: { mutationDeadlineMs?: number } = {}): Promise<ClickHouseHarness> {
  const { target, query, close } = await openOwnDatabase();
  const rows = openErasureRows({ ...target, ...options });
  return {
    rows,
    target,
    query,
    async add(table, row) {
      const values = Object.values(row).map(toLiteral);
      await query(`INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${values.join(', ')})`);
    },
    async read(table, environmentId, columns) {
      const show = columns.map((column) => (column.endsWith('_key') ? `lower(hex(${column}))` : `toString(${column})`));
      const response = await query(
        `SELECT [${show.join(', ')}] AS row FROM ${table} WHERE environment_id = '${environmentId}' FORMAT JSONEachRow`,
      );
      return response.split('\n').flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { row: string[] }).row]));
    },
    async close() {
      await rows.close();
      await close();
    },
  };
}

function toLiteral(value: unknown): string {
  if (Buffer.isBuffer(value)) return `unhex('${value.toString('hex')}')`;
  // DateTime64(3) interprets integers as milliseconds.
  return typeof value === 'number' ? String(value) : `'${value}'`;
}
