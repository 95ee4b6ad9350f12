import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Engine } from '../clickhouse.ts';
import { BUSY } from './fill.ts';

const CHUNK_LINES = 50_000;

/**
 * Compares a copy of the busy chain with the last version of each activity in the table: id, times, type, details and
 * position on the chain, each as text.
 * @returns the number of activities, of lines (an updated activity may have several), and of activities that differ
 */
export async function compareCopy(engine: Engine, file: string, endUs: number) {
  await engine.query('CREATE TABLE bench_copy (line String CODEC(ZSTD)) ENGINE = MergeTree ORDER BY tuple()');
  await insertLines(engine, file);
  const time = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
  const member = (name: string) => `JSONExtractRaw(line, '${name}')`;
  const text = (name: string) => `JSONExtractString(line, '${name}')`;
  const metadata = (name: string) => `JSONExtractString(line, 'blockchain_metadata', '${name}')`;
  const shown = ['id', 'updated_at', 'indexed_at', 'type'].map(text);
  const positions = ['transaction_hash', 'block_number', 'transaction_index', 'log_index'].map(metadata);
  const copied = `SELECT ${text('id')} AS name, argMax(cityHash64(${[...shown, member('details'), ...positions].join(', ')},
    JSONExtractString(line, 'chain', 'name')), ${text('updated_at')}) AS hash FROM bench_copy GROUP BY name`;
  const stored = ['toString(id)', time('updated_at'), time('indexed_at'), 'toString(type)', 'details'];
  const storedPositions = [
    "concat('0x', lower(hex(assumeNotNull(transaction_hash))))",
    ...['block_number', 'transaction_index', 'log_index'].map((column) => `toString(assumeNotNull(${column}))`),
  ];
  const table = `SELECT toString(id) AS name, argMax(cityHash64(${[...stored, ...storedPositions].join(', ')},
    toString(chain)), activities.updated_at) AS hash FROM activities
    WHERE chain = '${BUSY}' AND updated_at <= fromUnixTimestamp64Micro(${endUs}, 'UTC') GROUP BY name`;
  // Aggregates on disk when memory cannot hold ten million ids.
  const settings = 'SETTINGS max_bytes_before_external_group_by = 2000000000, max_threads = 2';
  const [activities = 0, differences = Number.NaN] = await engine.queryNumbers(
    `SELECT count(), countIf(sides != 2 OR hashes != 1) FROM (
       SELECT name, count() AS sides, uniqExact(hash) AS hashes FROM (${copied} UNION ALL ${table}) GROUP BY name)
     FORMAT TSV ${settings}`,
  );
  const lines = await engine.queryNumber('SELECT count() FROM bench_copy');
  await engine.query('DROP TABLE bench_copy SYNC');
  return { activities, lines, differences };
}

async function insertLines(engine: Engine, file: string): Promise<void> {
  const insert = (lines: readonly string[]) =>
    engine.insert('INSERT INTO bench_copy FORMAT LineAsString', Buffer.from(lines.join('\n')));
  let lines: string[] = [];
  for await (const line of createInterface({ input: createReadStream(file) })) {
    lines.push(line);
    if (lines.length === CHUNK_LINES) {
      await insert(lines);
      lines = [];
    }
  }
  if (lines.length > 0) await insert(lines);
}
