import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import { sumOf } from './world/metrics.ts';
import { BrokenGuarantee, type Effects, toSeconds } from './world/report.ts';
import type { ProxiedProcess } from './writer-process.ts';
import type { Difference, WriterRig } from './writer-rig.ts';
import type { TestEngine } from './writer-test-engine.ts';

/** Long enough even for a heavily overloaded machine. */
export const WAIT_MAX_MS = 120_000;

/** Waits until all records are committed. Asserts that every record has one raw row and that `verify` passes. */
export async function assertExact(rig: WriterRig): Promise<void> {
  await rig.caughtUp();
  assertSame(await rig.differences());
  await assertVerified(rig);
}

/** @throws BrokenGuarantee if raw rows differ from the log */
export function assertSame(differences: readonly Difference[]): void {
  const sum = (name: 'lost' | 'duplicated') => differences.reduce((total, each) => total + each[name], 0);
  if (differences.length > 0)
    throw new BrokenGuarantee(JSON.stringify(differences), { lost: sum('lost'), duplicated: sum('duplicated') });
}

export async function assertVerified(rig: WriterRig): Promise<void> {
  const { code, lines } = await rig.operate('verify', '--group', rig.group);
  assert.equal(code, 0, lines.join('\n'));
  assert.doesNotMatch(lines.join('\n'), /more than one raw row/);
}

const MESSAGES = 300;
const TOO_MANY_PARTS = 252;

export const countRetries = async (writer: ProxiedProcess) =>
  sumOf(await writer.metrics(), 'playline_stream_retries_total', 'step="write"');

/** Runs a writer during `work`. Asserts that the writer does not exit and that every record is stored once. */
export async function withWriter(
  rig: WriterRig,
  work: (writer: ProxiedProcess) => Promise<Effects>,
  settings: Record<string, string> = { BLOCK_ROWS_MAX: '40' },
): Promise<Effects> {
  const writer = await rig.startWriter(settings);
  try {
    await until('the writer is ready', () => writer.isReady(), WAIT_MAX_MS);
    const effects = await work(writer);
    await assertExact(rig);
    assert.equal(writer.hasExited, false, 'the writer has not exited');
    await until('the writer is ready again', () => writer.isReady(), WAIT_MAX_MS);
    await writer.stop();
    return effects;
  } finally {
    await writer.close();
  }
}

// Makes ClickHouse unavailable under load. The writer must report that it is not ready, and must not lose records.
export async function stopClickHouse(rig: WriterRig, options: { seed: number; forMs: number }): Promise<Effects> {
  const { seed, forMs } = options;
  const random = createRandom(seed);
  const publish = () => rig.publishMessages(`test-engine-${seed}`, MESSAGES);
  return await withWriter(rig, async (writer) => {
    await publish();
    await delay(random.integer(0, 200));
    const beganAt = performance.now();
    writer.clickhouse.down = true;
    const outage = delay(forMs);
    await publish();
    await until('a block is retried', async () => (await countRetries(writer)) > 0, WAIT_MAX_MS);
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await outage;
    const retries = await countRetries(writer);
    writer.clickhouse.down = false;
    const outageMs = performance.now() - beganAt;
    await publish();
    return { 'inserts retried': retries, 'ClickHouse unavailable s': toSeconds(outageMs) };
  });
}

/** Makes ClickHouse refuse inserts with TOO_MANY_PARTS. The writer must retry the same blocks until they succeed. */
export async function fillEngineWithParts(rig: WriterRig, seed: number): Promise<Effects> {
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-parts-${seed}`, MESSAGES);
    await rig.caughtUp();
    let refused = 0;
    writer.clickhouse.watch = {
      onResponse: (code) => {
        refused += Number(code === TOO_MANY_PARTS);
        return false;
      },
    };
    await rig.query('ALTER TABLE events MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 1');
    try {
      await rig.publishMessages(`test-parts-${seed}`, MESSAGES);
      await until('ClickHouse has refused inserts', () => refused > 2, WAIT_MAX_MS);
      assert.equal(sumOf(await writer.metrics(), 'playline_stream_stopped_partitions'), 0, 'no partition is paused');
    } finally {
      await rig.query('ALTER TABLE events RESET SETTING parts_to_delay_insert, parts_to_throw_insert');
    }
    return { 'inserts refused': refused };
  });
}

// Breaks connections after successful inserts, before the response. The writer must retry with the same token.
export async function loseResponses(rig: WriterRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  return await withWriter(rig, async (writer) => {
    let lost = 0;
    writer.clickhouse.watch = {
      onResponse: (code) => {
        const isLost = code === 0 && (lost === 0 || random.chance(0.4));
        if (isLost) lost++;
        return isLost;
      },
    };
    await rig.publishMessages(`test-responses-${seed}`, MESSAGES);
    await rig.caughtUp();
    assert.ok((await countRetries(writer)) >= lost && lost > 0, `${lost} responses were lost`);
    return { 'responses lost': lost };
  });
}

const MIB = 1024 * 1024;
const FAILURES_MIN = 3;

export const ENGINE_MEMORY_BYTES = 400 * MIB;

export interface EngineRig {
  readonly rig: WriterRig;
  readonly engine: TestEngine;
}

async function countFailures(writer: ProxiedProcess, code: string): Promise<number> {
  return sumOf(await writer.metrics(), 'playline_store_faults_total', `code="${code}"`);
}

const untilFailures = (writer: ProxiedProcess, code: string) =>
  until(`the writer gets ${code}`, async () => (await countFailures(writer, code)) >= FAILURES_MIN, WAIT_MAX_MS);

/** Asserts that a transient fault has not paused a partition. */
async function assertNonePaused(writer: ProxiedProcess): Promise<void> {
  assert.equal(sumOf(await writer.metrics(), 'playline_stream_stopped_partitions'), 0, 'no partition is paused');
}

const LAG_MAX = 4_000;

/** Publishes until the returned function is called, and pauses while the lag exceeds `LAG_MAX`. */
function openTraffic(rig: WriterRig, environmentId: string): () => Promise<void> {
  let isOver = false;
  const running = (async () => {
    while (!isOver)
      if ((await rig.lag()) > LAG_MAX) await delay(50);
      else await rig.publishMessages(environmentId, MESSAGES / 3);
  })();
  return async () => {
    isOver = true;
    await running;
  };
}

/** Prevents merges, which would hide duplicate rows. Unlike SYSTEM STOP MERGES, this survives a restart. */
const preventMerges = (rig: WriterRig) =>
  rig.query('ALTER TABLE events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1');

export async function stopEngineGracefully({ rig, engine }: EngineRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  await preventMerges(rig);
  return await withWriter(rig, async (writer) => {
    const endTraffic = openTraffic(rig, `test-stop-${seed}`);
    await delay(random.integer(100, 600));
    await engine.stop();
    await until('a block is retried', async () => (await countRetries(writer)) > 0, WAIT_MAX_MS);
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await engine.start();
    await endTraffic();
    await assertNonePaused(writer);
    return { 'graceful stops': 1, 'inserts retried': await countRetries(writer) };
  });
}

// Many small queries exhaust the memory completely. A few large queries would fail earlier.
const ANALYSTS = 64;
/** A query that uses 8 MiB for one second. */
const GREEDY_QUERY =
  'SELECT length(numbers), sleepEachRow(1) FROM (SELECT groupArray(number) AS numbers FROM numbers(1000000))';

export async function exhaustMemory({ rig, engine }: EngineRig, seed: number): Promise<Effects> {
  return await withWriter(rig, async (writer) => {
    // Disables compression, because a truncated compressed response would raise an unhandled error.
    const plain = { 'accept-encoding': 'identity' };
    let isOver = false;
    // Uses several accounts, because the number of concurrent queries per account is limited.
    const run = async (_: unknown, index: number) => {
      const { user = '', password = '' } = engine.analysts[index % engine.analysts.length] ?? {};
      const headers = { ...plain, 'x-clickhouse-user': user, 'x-clickhouse-key': password };
      while (!isOver) {
        const response = fetch(engine.address.url, { method: 'POST', headers, body: GREEDY_QUERY });
        // When ClickHouse is out of memory, it may break the connection.
        await response.then((received) => received.text()).catch(() => {});
      }
    };
    const analysts = Array.from({ length: ANALYSTS }).map(run);
    const endTraffic = openTraffic(rig, `test-memory-${seed}`);
    try {
      await untilFailures(writer, 'MEMORY_LIMIT_EXCEEDED');
    } finally {
      isOver = true;
      await Promise.all([...analysts, endTraffic()]);
    }
    await assertNonePaused(writer);
    return { 'attempts refused': await countFailures(writer, 'MEMORY_LIMIT_EXCEEDED') };
  });
}

const LARGE_PROPERTIES = JSON.stringify({ text: 'x'.repeat(8_000) });
const INSERT_MEMORY_BYTES = 20 * MIB;

/** Publishes blocks that exceed an insert's memory limit. The writer must halve blocks until inserts succeed. */
export async function refuseLargeBlocks(rig: WriterRig, seed: number): Promise<Effects> {
  const work = async (writer: ProxiedProcess) => {
    writer.clickhouse.insertSettings = { max_memory_usage: String(INSERT_MEMORY_BYTES) };
    await rig.publishMessages(`test-large-${seed}`, 4 * MESSAGES, { properties: LARGE_PROPERTIES });
    await rig.caughtUp();
    await assertNonePaused(writer);
    return { 'attempts refused': await countFailures(writer, 'MEMORY_LIMIT_EXCEEDED') };
  };
  return await withWriter(rig, work, { BLOCK_ROWS_MAX: '1000', BLOCK_AGE_MAX_MS: '1000' });
}

export function mountSmallDisk(folder: string): () => void {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=96m`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    throw new Error('could not mount a small file system; run the "disk full" scenario as root', { cause: error });
  }
  return () => void execFileSync('umount', ['--lazy', folder]);
}

/** Leaves less than 1 MiB free, the amount that ClickHouse reserves before each insert. */
function fillUp(folder: string, ballast: string): void {
  const { bavail, bsize } = statfsSync(folder);
  try {
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - MIB / 4)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

export async function fillDisk({ rig, engine }: EngineRig, seed: number): Promise<Effects> {
  const ballast = join(engine.dataFolder, 'ballast');
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
    await rig.caughtUp();
    try {
      fillUp(engine.dataFolder, ballast);
      await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
      await untilFailures(writer, 'NOT_ENOUGH_SPACE');
      await assertNonePaused(writer);
    } finally {
      rmSync(ballast, { force: true });
    }
    await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
    return { 'attempts refused': await countFailures(writer, 'NOT_ENOUGH_SPACE') };
  });
}

/** Simulates a ClickHouse server that was killed after it recorded an insert's token but before it stored the rows. */
export async function losePart({ rig, engine }: EngineRig, seed: number): Promise<Effects> {
  const random = createRandom(seed);
  await preventMerges(rig);
  return await withWriter(rig, async (writer) => {
    let skips = random.integer(0, 3);
    let lost = 0;
    // Serializes inserts, so that the latest part belongs to the insert whose response is lost.
    let queue = Promise.resolve();
    let release = () => {};
    writer.clickhouse.watch = {
      onRequest: async () => {
        const previous = queue;
        const next = Promise.withResolvers<void>();
        queue = next.promise;
        await previous;
        release = next.resolve;
      },
      onResponse: async (code) => {
        const isLost = code === 0 && lost === 0 && skips-- === 0;
        if (isLost) await loseLatestPart({ rig, engine });
        if (isLost) lost++;
        release();
        return isLost;
      },
    };
    await rig.publishMessages(`test-part-${seed}`, MESSAGES);
    await rig.caughtUp();
    return { 'parts lost': lost };
  });
}

async function loseLatestPart({ rig, engine }: EngineRig): Promise<void> {
  const path = await rig.query(
    "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active " +
      'ORDER BY max_block_number DESC LIMIT 1',
  );
  await engine.stop();
  rmSync(path, { recursive: true });
  await engine.start();
}

export async function rotatePassword({ rig, engine }: EngineRig, seed: number): Promise<Effects> {
  await preventMerges(rig);
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    await engine.stop();
    await engine.start(createHash('sha256').update(randomBytes(16)).digest('hex'));
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    await untilFailures(writer, 'AUTHENTICATION_FAILED');
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await assertNonePaused(writer);
    await engine.stop();
    await engine.start();
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    return { 'attempts refused': await countFailures(writer, 'AUTHENTICATION_FAILED') };
  });
}
