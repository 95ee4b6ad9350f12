import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Engine } from '../clickhouse.ts';

/** Lines per insert. */
const CHUNK_LINES = 50_000;

export interface Compared {
  /** Number of different activities of the chain. */
  readonly activities: number;
  /** Number of lines of the copy. An activity that was updated during the copying has several. */
  readonly lines: number;
  /** Number of activities that only one side has, or that differ. */
  readonly differences: number;
}

/**
 * Compares a copy of a chain with the last version of each activity in the table: id, times, type, details and place on
 * the chain, each as text. The lines of the copy are loaded into a table and folded there by id.
 */
export async function compareCopy(
  engine: Engine,
  { chain, file, endUs }: { chain: string; file: string; endUs: number },
): Promise<Compared> {
  await engine.ask('CREATE TABLE bench_copy (line String CODEC(ZSTD)) ENGINE = MergeTree ORDER BY tuple()');
  await insertLines(engine, file);
  const time = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
  const member = (name: string) => `JSONExtractRaw(line, '${name}')`;
  const text = (name: string) => `JSONExtractString(line, '${name}')`;
  const place = (name: string) => `JSONExtractString(line, 'blockchain_metadata', '${name}')`;
  const shown = ['id', 'updated_at', 'indexed_at', 'type'].map(text);
  const places = ['transaction_hash', 'block_number', 'transaction_index', 'log_index'].map(place);
  const copied = `SELECT ${text('id')} AS name, argMax(cityHash64(${[...shown, member('details'), ...places].join(', ')},
    JSONExtractString(line, 'chain', 'name')), ${text('updated_at')}) AS hash FROM bench_copy GROUP BY name`;
  const stored = ['toString(id)', time('updated_at'), time('indexed_at'), 'toString(type)', 'details'];
  const storedPlaces = [
    "concat('0x', lower(hex(assumeNotNull(transaction_hash))))",
    ...['block_number', 'transaction_index', 'log_index'].map((column) => `toString(assumeNotNull(${column}))`),
  ];
  const table = `SELECT toString(id) AS name, argMax(cityHash64(${[...stored, ...storedPlaces].join(', ')},
    toString(chain)), activities.updated_at) AS hash FROM activities
    WHERE chain = '${chain}' AND updated_at <= fromUnixTimestamp64Micro(${endUs}, 'UTC') GROUP BY name`;
  // Aggregates on disk when memory cannot hold ten million ids.
  const settings = 'SETTINGS max_bytes_before_external_group_by = 2000000000, max_threads = 2';
  const answer = await engine.ask(
    `SELECT count(), countIf(sides != 2 OR hashes != 1) FROM (
       SELECT name, count() AS sides, uniqExact(hash) AS hashes FROM (${copied} UNION ALL ${table}) GROUP BY name)
     FORMAT TSV ${settings}`,
  );
  const [activities = 0, differences = Number.NaN] = answer.split('\t').map(Number);
  const lines = Number(await engine.ask('SELECT count() FROM bench_copy'));
  await engine.ask('DROP TABLE bench_copy SYNC');
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
