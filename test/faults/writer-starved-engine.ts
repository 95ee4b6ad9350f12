import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '../../services/operator/src/simulate/random.ts';
import { sumOf } from './world/metrics.ts';
import type { Reached } from './world/reached.ts';
import { retriesOf, withWriter } from './writer-engine.ts';
import { WAIT_MAX_MS } from './writer-exact.ts';
import type { OwnEngine } from './writer-own-engine.ts';
import type { GatedProcess } from './writer-process.ts';
import type { WriterRig } from './writer-rig.ts';

const MESSAGES = 300;
const MIB = 1024 * 1024;
/** Attempts of one block, or of several. */
const FAULTS_MIN = 3;

/** Limits of an engine of its own: analysts may take more than the first, and the second is soon full. */
export const ENGINE_MEMORY_BYTES = 400 * MIB;
export const ENGINE_DISK_MIB = 96;

/** A rig on a separate engine. */
export interface StarvedRig {
  readonly rig: WriterRig;
  readonly engine: OwnEngine;
}

/** Faults of the store that the writer has counted, by the engine's name for them. */
async function faultsOf(writer: GatedProcess, code: string): Promise<number> {
  return sumOf(await writer.metrics(), 'event_writer_store_faults_total', `code="${code}"`);
}

/** Resolves when the writer has met a fault, and not only brushed it. */
const meets = (writer: GatedProcess, code: string) =>
  until(`the writer meets ${code}`, async () => (await faultsOf(writer, code)) >= FAULTS_MIN, WAIT_MAX_MS);

/** No partition may stand: what is tried here passes, and the writer must know that. */
async function assertNoneStopped(writer: GatedProcess): Promise<void> {
  assert.equal(sumOf(await writer.metrics(), 'stream_partitions_stopped'), 0, 'no partition has stopped');
}

/**
 * Records that may wait for the writer: more would only be waited for in the end, forty rows a block. Without it a
 * trial on a busy machine published for as long as the engine was away, and the writer did not catch up in two minutes.
 */
const BEHIND_MAX = 4_000;
const LOOK_AGAIN_MS = 50;

/** Publishes until the returned function is called, and pauses while the writer lags far behind. */
function openTraffic(rig: WriterRig, environmentId: string): () => Promise<void> {
  let isOver = false;
  const run = async () => {
    while (!isOver) {
      if ((await rig.lag()) > BEHIND_MAX) await delay(LOOK_AGAIN_MS);
      else await rig.publishMessages(environmentId, MESSAGES / 3);
    }
  };
  const running = run();
  return async () => {
    isOver = true;
    await running;
  };
}

/** Kept with the table: an engine that comes back would merge again, and fold what was written twice. */
const neverMerge = (rig: WriterRig) =>
  rig.query('ALTER TABLE events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1');

/** The engine is asked to end under load, as in a deployment, and comes back. */
export async function stopEngineGracefully({ rig, engine }: StarvedRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  await neverMerge(rig);
  return await withWriter(rig, async (writer) => {
    const endTraffic = openTraffic(rig, `test-stop-${seed}`);
    await delay(random.integer(100, 600));
    await engine.stop();
    await until('a block is tried again', async () => (await retriesOf(writer)) > 0, WAIT_MAX_MS);
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await engine.start();
    await endTraffic();
    await assertNoneStopped(writer);
    return { 'graceful stops': 1, 'inserts repeated': await retriesOf(writer) };
  });
}

/** Two people's dashboards. Many small queries, so that the last MiB are taken as well: a few large ones starve first. */
const ANALYSTS = 64;
/** Holds 8 MiB for a second: sixty-four of them are more than the engine has. */
const GREEDY_QUERY =
  'SELECT length(taken), sleepEachRow(1) FROM (SELECT groupArray(number) AS taken FROM numbers(1000000))';

/** Analysts ask for as much as they may, so that the whole server has none left; then they go home. */
export async function exhaustMemory({ rig, engine }: StarvedRig, seed: number): Promise<Reached> {
  return await withWriter(rig, async (writer) => {
    // Plain: an answer that breaks off in the midst of its compression ends more than the question.
    const plain = { 'accept-encoding': 'identity' };
    let isOver = false;
    // No account may ask as many questions at once as this takes.
    const ask = async (_: unknown, index: number) => {
      const { user = '', password = '' } = engine.analysts[index % engine.analysts.length] ?? {};
      const headers = { ...plain, 'x-clickhouse-user': user, 'x-clickhouse-key': password };
      while (!isOver) {
        const answer = fetch(engine.address.url, { method: 'POST', headers, body: GREEDY_QUERY });
        // Without memory the engine may break connections off as well.
        await answer.then((given) => given.text()).catch(() => {});
      }
    };
    const analysts = Array.from({ length: ANALYSTS }).map(ask);
    const endTraffic = openTraffic(rig, `test-memory-${seed}`);
    try {
      await meets(writer, 'MEMORY_LIMIT_EXCEEDED');
    } finally {
      isOver = true;
      await Promise.all([...analysts, endTraffic()]);
    }
    await assertNoneStopped(writer);
    return { 'attempts refused': await faultsOf(writer, 'MEMORY_LIMIT_EXCEEDED') };
  });
}

/** Rows of these messages alone are some MiB a block; an insert of a few of them fits under this limit. */
const LARGE_PROPERTIES = JSON.stringify({ text: 'x'.repeat(8_000) });
const INSERT_MEMORY_BYTES = 20 * MIB;

/** Blocks of a size that no insert may have: the writer halves them until they fit, and stores every row once. */
export async function refuseLargeBlocks(rig: WriterRig, seed: number): Promise<Reached> {
  const settings = { BLOCK_ROWS_MAX: '1000', BLOCK_AGE_MAX_MS: '1000' };
  const work = async (writer: GatedProcess) => {
    writer.clickhouse.insertSettings = { max_memory_usage: String(INSERT_MEMORY_BYTES) };
    await rig.publishMessages(`test-large-${seed}`, 4 * MESSAGES, { properties: LARGE_PROPERTIES });
    await rig.caughtUp(WAIT_MAX_MS);
    await assertNoneStopped(writer);
    return { 'attempts refused': await faultsOf(writer, 'MEMORY_LIMIT_EXCEEDED') };
  };
  return await withWriter(rig, work, settings);
}

/** A file system so small that a test can fill it. Needs the right to mount: root, here and in a container. */
export function mountSmallDisk(folder: string): () => void {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${ENGINE_DISK_MIB}m`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    throw new Error('a full disk is tried on a small file system, and to mount one takes root', { cause: error });
  }
  return () => void execFileSync('umount', ['--lazy', folder]);
}

/** All but a few hundred KiB: the engine asks for a MiB before it begins an insert. It may take what is left meanwhile. */
function fillUp(folder: string, ballast: string): void {
  const { bavail, bsize } = statfsSync(folder);
  try {
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - MIB / 4)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

/** The disk of the engine is full, and later has room again. */
export async function fillDisk({ rig, engine }: StarvedRig, seed: number): Promise<Reached> {
  const ballast = join(engine.dataFolder, 'ballast');
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
    await rig.caughtUp(WAIT_MAX_MS);
    try {
      fillUp(engine.dataFolder, ballast);
      await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
      await meets(writer, 'NOT_ENOUGH_SPACE');
      await assertNoneStopped(writer);
    } finally {
      rmSync(ballast, { force: true });
    }
    await rig.publishMessages(`test-disk-${seed}`, MESSAGES);
    return { 'attempts refused': await faultsOf(writer, 'NOT_ENOUGH_SPACE') };
  });
}

/**
 * As an engine leaves it that is killed after it has noted the token of an insert and before it has renamed the part
 * into place: it remembers the token and does not have the rows.
 */
export async function losePart({ rig, engine }: StarvedRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  await neverMerge(rig);
  return await withWriter(rig, async (writer) => {
    let passages = random.integer(0, 3);
    let lost = 0;
    // One insert at a time: the youngest part is then the one whose answer is taken away, and no acknowledged one.
    let turn = Promise.resolve();
    let endTurn = () => {};
    writer.clickhouse.watch = {
      arrived: async () => {
        const before = turn;
        const own = Promise.withResolvers<void>();
        turn = own.promise;
        await before;
        endTurn = own.resolve;
      },
      answered: async (code) => {
        const isLost = code === 0 && lost === 0 && passages-- === 0;
        if (isLost) await loseYoungestPart({ rig, engine });
        if (isLost) lost++;
        endTurn();
        return isLost;
      },
    };
    await rig.publishMessages(`test-part-${seed}`, MESSAGES);
    await rig.caughtUp(WAIT_MAX_MS);
    return { 'parts lost': lost };
  });
}

async function loseYoungestPart({ rig, engine }: StarvedRig): Promise<void> {
  const path = await rig.query(
    "SELECT path FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active " +
      'ORDER BY max_block_number DESC LIMIT 1',
  );
  await engine.stop();
  rmSync(path, { recursive: true });
  await engine.start();
}

/** The writer's password is changed under it, and changed back. */
export async function rotatePassword({ rig, engine }: StarvedRig, seed: number): Promise<Reached> {
  await neverMerge(rig);
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    await engine.stop();
    await engine.start(createHash('sha256').update(randomBytes(16)).digest('hex'));
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    await meets(writer, 'AUTHENTICATION_FAILED');
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await assertNoneStopped(writer);
    await engine.stop();
    await engine.start();
    await rig.publishMessages(`test-password-${seed}`, MESSAGES);
    return { 'attempts refused': await faultsOf(writer, 'AUTHENTICATION_FAILED') };
  });
}
