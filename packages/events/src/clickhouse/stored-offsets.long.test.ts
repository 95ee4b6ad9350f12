import { randomBytes } from 'node:crypto';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { createTables, testStores } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { OffsetTable } from '../store.ts';
import { storedOffsetsQuery } from './index.ts';

const ROWS = 1_000_000;
const DAYS = 30;
/** In `consent_log`, identities are 500 rows apart in the sorting key, so the blocks are small. */
const BLOCK_ROWS: Record<OffsetTable, number> = {
  events: 2_000,
  identity_links: 2_000,
  message_rejections: 2_000,
  consent_log: 100,
};
/** Maximum fraction of the table that may be read: two of thirty days, plus the remainder of the granules. */
const FRACTION_MAX = 0.1;
const START_MS = 120_000;

/** Expressions that fill a table in log order. `received` is the time of row `number`. */
const FILLS: Record<OffsetTable, Record<string, string>> = {
  events: {
    environment_id: "'live'",
    event_name: "concat('event_', toString(number % 4))",
    event_time: 'received - toIntervalSecond(cityHash64(number) % 60)',
    identity_key: 'unhex(hex(sipHash128(number % 10007)))',
    message_id: 'reinterpretAsUUID(toUInt128(number))',
  },
  identity_links: {
    environment_id: "'live'",
    link_partition: 'number % 3',
    link_offset: 'intDiv(number, 3)',
    event_time: 'received',
  },
  consent_log: { environment_id: "'live'", identity_key: 'unhex(hex(sipHash128(number)))', logged_at: 'received' },
  message_rejections: {
    environment_id: "'live'",
    code: "concat('CODE_', toString(number % 3))",
    field: "concat('field_', toString(number % 3))",
  },
};

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;
const target = { url, user, password, database };
let client: ClickHouseClient;

beforeAll(async () => {
  await createTables(target);
  client = createClient({ url, username: user, password, database, request_timeout: START_MS });
}, START_MS);
afterAll(async () => {
  await client.command({ query: `DROP DATABASE ${database} SYNC` });
  await client.close();
});

const fill = async (table: OffsetTable) => {
  const startMs = Date.now() - DAYS * 86_400_000;
  const values: Record<string, string> = {
    ...FILLS[table],
    received_at: 'received',
    kafka_partition: 'number % 2',
    kafka_offset: 'intDiv(number, 2)',
  };
  const times = `fromUnixTimestamp64Milli(toInt64(${startMs} + number * ${(DAYS * 86_400_000) / ROWS}), 'UTC')`;
  await client.command({
    query: `INSERT INTO ${table} (${Object.keys(values).join(', ')}) SELECT ${Object.values(values).join(', ')}
      FROM (SELECT number, ${times} AS received FROM numbers(${ROWS})) SETTINGS max_insert_threads = 1, max_threads = 1`,
  });
  await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
};
/** Reads rows in the writer's RowBinary format. */
const readRows = async (table: OffsetTable, range: { start: number; end: number }): Promise<Buffer[]> => {
  const columns = EVENT_TABLE_COLUMNS[table].map(({ name }) => name).join(', ');
  const result = await client.query({
    query: `SELECT hex(formatRow('RowBinary', ${columns})) AS row FROM ${table}
      WHERE kafka_partition = 1 AND kafka_offset >= ${range.start} AND kafka_offset < ${range.end}`,
    format: 'JSONEachRow',
  });
  return (await result.json<{ row: string }>()).map(({ row }) => Buffer.from(row, 'hex'));
};

it.each(Object.keys(FILLS) as OffsetTable[])(
  'the query for stored offsets reads a small part of %s and finds all offsets',
  async (table) => {
    await fill(table);
    const start = ROWS * 0.4;
    const blockRows = BLOCK_ROWS[table];
    const range = { partition: 1, start, end: start + blockRows };
    const rows = await readRows(table, range);
    const result = await client.query({
      query: storedOffsetsQuery(table, { ...range, rows }),
      format: 'JSONEachRow',
      clickhouse_settings: { wait_end_of_query: 1 },
    });
    expect(await result.json()).toHaveLength(blockRows);
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as { read_rows: string };
    expect(Number(summary.read_rows)).toBeLessThan(ROWS * FRACTION_MAX);
  },
);
