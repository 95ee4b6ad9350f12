import { createReadStream, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createEngine, type Engine } from '../clickhouse.ts';
import { BUSY, FEED_CHAINS, fillFeed, resumeMerges } from '../feed/fill.ts';
import { type Bench, type Figure, toRow } from '../figure.ts';
import { type Measured, openProcess, waitFor } from '../processes.ts';
import { startChainApi } from '../services.ts';

const CHUNK_LINES = 50_000;

/**
 * Compares a copy of the busy chain with the latest version of each activity in the table: id, timestamps, type,
 * details and position on the chain.
 * @returns the numbers of activities, lines (one per version) and differing activities
 */
async function compareCopy(engine: Engine, file: string, endUs: number) {
  await engine.query('CREATE TABLE bench_copy (line String CODEC(ZSTD)) ENGINE = MergeTree ORDER BY tuple()');
  await insertLines(engine, file);
  const time = (column: string) => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`;
  const member = (name: string) => `JSONExtractRaw(line, '${name}')`;
  const text = (name: string) => `JSONExtractString(line, '${name}')`;
  const metadata = (name: string) => `JSONExtractString(line, 'blockchain_metadata', '${name}')`;
  const copiedFields = ['id', 'updated_at', 'indexed_at', 'type'].map(text);
  const positions = ['transaction_hash', 'block_number', 'transaction_index', 'log_index'].map(metadata);
  const copied = `SELECT ${text('id')} AS name, argMax(cityHash64(${[...copiedFields, member('details'), ...positions].join(', ')},
    JSONExtractString(line, 'chain', 'name')), ${text('updated_at')}) AS hash FROM bench_copy GROUP BY name`;
  const stored = ['toString(id)', time('updated_at'), time('indexed_at'), 'toString(type)', 'details'];
  const storedPositions = [
    "concat('0x', lower(hex(assumeNotNull(transaction_hash))))",
    ...['block_number', 'transaction_index', 'log_index'].map((column) => `toString(assumeNotNull(${column}))`),
  ];
  const table = `SELECT toString(id) AS name, argMax(cityHash64(${[...stored, ...storedPositions].join(', ')},
    toString(chain)), activities.updated_at) AS hash FROM activities
    WHERE chain = '${BUSY}' AND updated_at <= fromUnixTimestamp64Micro(${endUs}, 'UTC') GROUP BY name`;
  // Aggregates on disk, because 10 million ids may not fit in memory.
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

const LINE_BYTES = 750;
/** Copying 10 million activities takes hours on a busy machine. */
const COPY_MAX_MS = 86_400_000;

interface KilledCopy {
  readonly url: string;
  /** The output file. The state file is in the same folder. */
  readonly file: string;
  readonly kills: number;
  readonly activities: number;
}

/** Kills `operator replicate` at random times, then runs it to completion. @returns the total duration in seconds */
async function copyKilled(bench: Bench, copy: KilledCopy): Promise<number> {
  const startMs = performance.now();
  for (let kill = 1; kill <= copy.kills; kill++) {
    const fraction = (kill - Math.random()) / (copy.kills + 1);
    const job = startCopy(bench, copy);
    const isDue = async () => job.exitCode() !== null || sizeOf(copy.file) >= fraction * copy.activities * LINE_BYTES;
    await waitFor(`${Math.round(100 * fraction)} % is copied`, isDue, { maxMs: COPY_MAX_MS });
    if (job.exitCode() !== null) throw new Error(`the copy exited before it was killed: ${job.output()}`);
    await job.close('SIGKILL');
  }
  const job = startCopy(bench, copy);
  await waitFor('the copy has exited', async () => job.exitCode() !== null, { maxMs: COPY_MAX_MS });
  if (job.exitCode() !== 0) throw new Error(`the copy exited with ${job.exitCode()}: ${job.output()}`);
  return (performance.now() - startMs) / 1_000;
}

const sizeOf = (file: string) => (existsSync(file) ? statSync(file).size : 0);

function startCopy({ environment }: Bench, { url, file }: KilledCopy): Measured {
  const target = ['--chain', BUSY, '--url', url, '--to', 'file', '--out', file, '--state', `${file}.state`];
  const args = ['replicate', ...target, '--page-size', '200', '--json'];
  return openProcess('services/operator/src/main.ts', { environment, args });
}

const KILLS = 3;
const YEAR_S = 365 * 86_400;

// Copies a year of history with `operator replicate`, killed at random times, and compares every activity.
export const replicate: Figure = {
  name: 'replicate',
  optional: true,
  async measure(bench) {
    const feed = await fillFeed(bench);
    await resumeMerges(bench);
    const server = await startChainApi(bench, FEED_CHAINS);
    const folder = mkdtempSync(join(tmpdir(), 'playline-bench-copy-'));
    const file = join(folder, 'copy.ndjson');
    try {
      const url = `http://127.0.0.1:${server.port}`;
      const seconds = await copyKilled(bench, { url, file, kills: KILLS, activities: feed.rows });
      const { activities, lines, differences } = await compareCopy(createEngine(bench), file, feed.endUs);
      if (differences > 0)
        throw new Error(`${differences} of ${activities} activities differ between the copy and the table`);
      return [
        toRow({
          case: `${activities} activities, killed ${KILLS} times`,
          unit: 'activities per second',
          value: activities / seconds,
          peer: 'the year’s average rate',
          peerValue: activities / YEAR_S,
          notes: `${(seconds / 60).toFixed(1)} minutes in ${Math.ceil(lines / 200)} pages; no differences`,
        }),
      ];
    } finally {
      await server.close();
      rmSync(folder, { recursive: true });
    }
  },
};
