import { createHash, randomBytes } from 'node:crypto';
import type { ErasureRows, ErasureTarget } from '@playline/erasure';
import { openErasureRows } from '@playline/erasure/clickhouse';
import { createEngine, type Engine, waitForMerges } from '../clickhouse.ts';
import { watchEngineCpu } from '../engine-cpu.ts';
import type { Bar, Bench, Figure, Row } from '../figure.ts';
import { toRow } from '../figure.ts';

const ROWS = 10_000_000;
const PEOPLE = 100_000;
const NAMES = 40;
const DAYS = 270;
const DAY_MS = 86_400_000;
const MS_PER_ROW = (DAYS * DAY_MS) / ROWS;
/** Rows of one insert: few parts to merge, and some gigabyte of the engine's memory. */
const CHUNK_ROWS = 1_000_000;
const REQUESTS = 1_000;
const SWEEPS_MAX = 3;
const BYTES_MAX: Bar = { of: 'ratio', bound: 'at most', must: 0.1 };
/** Behind the fences and the waits of a request there is not much left of its minute. */
const VISIBLE_MAX: Bar = { of: 'ours', bound: 'at most', must: 60_000, aim: 20_000 };

/**
 * The column store's part of erasing people: each has a hundred rows, spread evenly over names and days, so that hardly
 * two stand near each other. Beside it what the same costs without the one thing that makes it cheap: for bytes the
 * whole table, for a batch as many requests one by one.
 */
export const erasureRows: Figure = {
  name: 'erasure-rows',
  optional: true,
  async measure(bench) {
    const engine = createEngine(bench);
    const endMs = Date.now() - (Date.now() % DAY_MS);
    for (let first = 0; first < ROWS; first += CHUNK_ROWS) await engine.ask(fillStatement(first, endMs));
    await waitForMerges(engine, bench.database);
    const { user, url, password } = bench.stores.clickhouse;
    const rows = openErasureRows({ url, user, password, database: bench.database });
    try {
      const at = { engine, rows, bench };
      const one = await eraseSome(at, { first: 0, count: 1 }, endMs);
      const many = await eraseSome(at, { first: 1, count: REQUESTS }, endMs);
      return [bytesRow(one), ...batchRows(one, many), ...(await removalRows(at))];
    } finally {
      await rows.close();
    }
  },
};

const keyOf = (kind: 'user' | 'anonymous', person: number) => createHash('md5').update(`${kind}${person}`).digest();

/** As the log goes, in the order of time. Ids and text as clients send them: ids stay with a person, sessions with a day, scores are new each time. */
function fillStatement(first: number, endMs: number): string {
  const hash = (salt: number) => `cityHash64(number, ${salt})`;
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, identity_type, device_id, session_id, surface, library,
    library_version, user_agent, locale, page_url, page_path, page_title, properties, trace_id, kafka_partition, kafka_offset)
  SELECT 'live', 'track', concat('event_', toString(${hash(2)} % ${NAMES})), happened, happened + INTERVAL 1 SECOND,
    reinterpretAsUUID(sipHash128(number)), MD5(concat('user', person)) AS owner, MD5(concat('anonymous', person)), owner,
    toString(reinterpretAsUUID(MD5(concat('a', person)))), concat('user-', person), 'custom',
    toString(reinterpretAsUUID(MD5(concat('d', person)))),
    toString(reinterpretAsUUID(MD5(concat(person, toString(toDate(happened)))))), 'web', 'audience-web', '2.5.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0', 'en-US', 'https://play.example.com/arena/season-4',
    '/arena/season-4', 'Arena', concat('{"level":', toString(${hash(7)} % 100), ',"mode":"ranked","weapon":"bow","score":',
      toString(${hash(8)} % 100000), ',"seconds":', toString(${hash(9)} % 1000), '}'),
    lower(hex(sipHash128(number, 1))), number % 6, intDiv(number, 6)
  FROM (SELECT number, toString(${hash(3)} % ${PEOPLE}) AS person,
    fromUnixTimestamp64Milli(toInt64(${endMs - DAYS * DAY_MS} + number * ${MS_PER_ROW}), 'UTC') AS happened
    FROM numbers(${first}, ${CHUNK_ROWS}))
  SETTINGS max_insert_threads = 1, max_threads = 2, max_insert_block_size = ${CHUNK_ROWS},
    min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0, max_block_size = 1000000`;
}

interface At {
  readonly engine: Engine;
  readonly rows: ErasureRows;
  readonly bench: Bench;
}

interface Spent {
  readonly people: number;
  readonly deleted: number;
  readonly ms: number;
  readonly cpuSeconds: number;
  readonly readBytes: number;
  readonly tableBytes: number;
}

/** Everything that the eraser asks of the rows until they are visibly gone. */
async function eraseSome(at: At, people: { first: number; count: number }, endMs: number): Promise<Spent> {
  const { engine, rows, bench } = at;
  const batch = randomBytes(16);
  const targets = Array.from({ length: people.count }, (_, index) => people.first + index).flatMap((person) =>
    (['user', 'anonymous'] as const).map(
      (kind): ErasureTarget => ({ environmentId: 'live', key: keyOf(kind, person), cutoffMs: endMs }),
    ),
  );
  const tableBytes = await tableBytesOf(engine);
  const before = await readBytesOf(engine, bench);
  const cpu = await watchEngineCpu(engine, 'erasure_targets');
  const startMs = performance.now();
  await rows.putTargets(batch, targets);
  const found = await rows.sweep(batch);
  let left = await rows.findSurvivors(batch);
  // Parts that were merged meanwhile.
  for (let turn = 0; turn < SWEEPS_MAX && left.length > 0; turn++) {
    await rows.sweep(batch);
    left = await rows.findSurvivors(batch);
  }
  const ms = performance.now() - startMs;
  const cpuSeconds = cpu();
  if (left.length > 0) throw new Error(`${left.length} survivors`);
  await rows.dropTargets(batch);
  const readBytes = (await readBytesOf(engine, bench)) - before;
  const deleted = found.reduce((sum, each) => sum + (each.as === 'own' ? each.rows : 0), 0);
  return { people: people.count, deleted, ms, cpuSeconds, readBytes, tableBytes };
}

const tableBytesOf = async (engine: Engine) =>
  Number(
    await engine.ask(
      `SELECT sum(data_uncompressed_bytes) FROM system.parts WHERE database = currentDatabase() AND active AND table = 'events'`,
    ),
  );

/**
 * What the engine has read, by its own count: of questions, and of changes of parts. Decompressed, since of a part of one
 * file it counts every seek as a buffer read from the file.
 */
async function readBytesOf(engine: Engine, { database }: Bench): Promise<number> {
  await engine.ask('SYSTEM FLUSH LOGS query_log, part_log');
  const sum = "sum(ProfileEvents['CompressedReadBufferBytes'])";
  const answer = await engine.ask(
    `SELECT (SELECT ${sum} FROM system.query_log WHERE type = 'QueryFinish' AND current_database = '${database}'
       AND position(query, 'erasure_targets') > 0) + (SELECT ${sum} FROM system.part_log WHERE database = '${database}' AND event_type = 'MutatePart')`,
  );
  return Number(answer);
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

function bytesRow({ readBytes, tableBytes, deleted, ms, cpuSeconds }: Spent): Row {
  return toRow({
    figure: 'erasure-rows',
    case: `one person of ${deleted} rows, spread evenly over ${NAMES} names and ${DAYS} days, in ${ROWS / 1e6} million`,
    unit: 'bytes read',
    ours: readBytes,
    beside: 'the whole table',
    theirs: tableBytes,
    bars: [BYTES_MAX],
    also: `${megabytes(readBytes)} of ${megabytes(tableBytes)}; ${seconds(ms)}, ${cpuSeconds.toFixed(2)} CPU-s`,
  });
}

function batchRows(one: Spent, many: Spent): Row[] {
  const of = { figure: 'erasure-rows', beside: 'one request alone' };
  const what = `${many.people} people in one batch, ${many.deleted} rows`;
  const also = `${megabytes(many.readBytes)} read of ${megabytes(many.tableBytes)}`;
  return [
    toRow({
      ...of,
      case: what,
      unit: 'CPU-ms per request',
      ours: (many.cpuSeconds * 1000) / many.people,
      theirs: one.cpuSeconds * 1000,
      also,
    }),
    toRow({
      ...of,
      case: what,
      unit: 'ms until visibly gone',
      ours: many.ms,
      theirs: one.ms,
      bars: [VISIBLE_MAX],
      also,
    }),
  ];
}

async function removalRows({ engine, rows }: At): Promise<Row[]> {
  const cpu = await watchEngineCpu(engine, 'erasure_targets');
  const startMs = performance.now();
  await rows.removeDeleted();
  const [ms, cpuSeconds] = [performance.now() - startMs, cpu()];
  const againMs = performance.now();
  await rows.removeDeleted();
  return [
    toRow({
      figure: 'erasure-rows',
      case: 'deleted rows are removed from every file, by night',
      unit: 'ms',
      ours: ms,
      beside: 'the same again, with nothing to remove',
      theirs: performance.now() - againMs,
      also: `${cpuSeconds.toFixed(1)} CPU-s`,
    }),
  ];
}
