import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { createRandom } from '@playline/testkit/random';
import { sumOf } from './world/metrics.ts';
import { type Reached, toSeconds } from './world/reached.ts';
import { assertExact, WAIT_MAX_MS } from './writer-exact.ts';
import type { GatedProcess } from './writer-process.ts';
import type { WriterRig } from './writer-rig.ts';

const MESSAGES = 300;
const TOO_MANY_PARTS = 252;

export const retriesOf = async (writer: GatedProcess) =>
  sumOf(await writer.metrics(), 'playline_stream_retries_total', 'step="write"');

/** Runs a writer during `work`. Asserts that the writer survives and that every record is stored once. */
export async function withWriter(
  rig: WriterRig,
  work: (writer: GatedProcess) => Promise<Reached>,
  settings: Record<string, string> = { BLOCK_ROWS_MAX: '40' },
): Promise<Reached> {
  const writer = await rig.startWriter(settings);
  try {
    await until('the writer is ready', () => writer.isReady(), WAIT_MAX_MS);
    const reached = await work(writer);
    await assertExact(rig);
    assert.equal(writer.gone, false, 'the writer lives through it');
    await until('the writer is ready again', () => writer.isReady(), WAIT_MAX_MS);
    await writer.stop();
    return reached;
  } finally {
    await writer.close();
  }
}

/** ClickHouse is down for a while under traffic. Nothing is dropped, and the writer reports that it is not ready. */
export async function takeEngineAway(rig: WriterRig, options: { seed: number; forMs: number }): Promise<Reached> {
  const { seed, forMs } = options;
  const random = createRandom(seed);
  const publish = () => rig.publishMessages(`test-engine-${seed}`, MESSAGES);
  return await withWriter(rig, async (writer) => {
    await publish();
    await delay(random.integer(0, 200));
    const beganAt = performance.now();
    writer.clickhouse.down = true;
    const back = delay(forMs);
    await publish();
    await until('a block is tried again', async () => (await retriesOf(writer)) > 0, WAIT_MAX_MS);
    await until('the writer is not ready', async () => !(await writer.isReady()), WAIT_MAX_MS);
    await back;
    const repeated = await retriesOf(writer);
    writer.clickhouse.down = false;
    const awayMs = performance.now() - beganAt;
    await publish();
    return { 'inserts repeated': repeated, 'engine away s': toSeconds(awayMs) };
  });
}

/** ClickHouse refuses inserts because merges do not keep up. The same blocks are written once they do. */
export async function fillEngineWithParts(rig: WriterRig, seed: number): Promise<Reached> {
  return await withWriter(rig, async (writer) => {
    await rig.publishMessages(`test-parts-${seed}`, MESSAGES);
    await rig.caughtUp();
    let refused = 0;
    writer.clickhouse.watch = {
      answered: (code) => {
        refused += Number(code === TOO_MANY_PARTS);
        return false;
      },
    };
    await rig.query('ALTER TABLE events MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 1');
    try {
      await rig.publishMessages(`test-parts-${seed}`, MESSAGES);
      await until('the engine has refused', () => refused > 2, WAIT_MAX_MS);
      assert.equal(sumOf(await writer.metrics(), 'playline_stream_stopped_partitions'), 0, 'no partition has stopped');
    } finally {
      await rig.query('ALTER TABLE events RESET SETTING parts_to_delay_insert, parts_to_throw_insert');
    }
    return { 'inserts refused': refused };
  });
}

/** Connections break instead of answering successful inserts. The writer repeats them with the same token. */
export async function loseAnswers(rig: WriterRig, seed: number): Promise<Reached> {
  const random = createRandom(seed);
  return await withWriter(rig, async (writer) => {
    let lost = 0;
    writer.clickhouse.watch = {
      answered: (code) => {
        const loses = code === 0 && (lost === 0 || random.chance(0.4));
        if (loses) lost++;
        return loses;
      },
    };
    await rig.publishMessages(`test-answers-${seed}`, MESSAGES);
    await rig.caughtUp();
    assert.ok((await retriesOf(writer)) >= lost && lost > 0, `${lost} answers were lost`);
    return { 'answers lost': lost };
  });
}
