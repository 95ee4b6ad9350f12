import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { openClickHouseGate } from '../../faults/writer-clickhouse-gate.ts';
import { expectErased, survivorsOf } from '../checks.ts';
import { asVisitor, track } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, fenced } from './scene.ts';

const UPKEEP_NOW = new URL('upkeep-now.ts', import.meta.url).href;
const ROWS = 3;

export async function insertLate(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  await rig.running['event-writer'].close();
  const gate = await openClickHouseGate(rig.world.deployment.engine.url);
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  gate.watch = {
    onRequest: async () => {
      reached.resolve();
      await released.promise;
    },
  };
  const zombie = await rig.start('event-writer', { CLICKHOUSE_URL: gate.url });
  // The block contains only this person's messages. The next writer drops all of them and inserts no block with the
  // same token, so ClickHouse does not deduplicate the late insert.
  await rig.send(Array.from({ length: ROWS }, () => track(asVisitor(scene.person))));
  await reached.promise;
  zombie.signal('SIGSTOP');
  const erasureId = await rig.erase(asVisitor(scene.person));
  await fenced(rig, scene.person.keys);
  rig.running['event-writer'] = await rig.start('event-writer');
  const { cutoffAt } = await expectErased(rig, erasureId, scene.person.keys);
  released.resolve();
  await gate.settled();
  const survivors = await survivorsOf(rig, scene.person.keys, cutoffAt);
  expect(survivors).toMatchObject([{ table: 'events', as: 'own', rows: ROWS }]);
  zombie.signal('SIGCONT');
  await scrubByEraser(rig, async () => (await survivorsOf(rig, scene.person.keys, cutoffAt)).length === 0);
  await scene.ends(erasureId);
  await zombie.close();
  await gate.close();
  await scene.ends(erasureId);
}

/** Starts an eraser that runs its daily work immediately. */
async function scrubByEraser(rig: ErasureRig, isSwept: () => Promise<boolean>): Promise<void> {
  await rig.running.eraser.close();
  const eraser = await rig.start('eraser', { NODE_OPTIONS: `--import=${UPKEEP_NOW}` });
  const counted = async () => sumOf(await metricsOf(eraser), 'playline_eraser_survivors_total', 'table="events"');
  await until('the survivors are counted', async () => (await counted()) >= ROWS);
  expect(await counted()).toBe(ROWS);
  // Wait before closing: a closed eraser aborts its scrub, and the next eraser starts one only after five minutes.
  await until('the survivors are deleted', isSwept);
  const ages = async () => sumOf(await metricsOf(eraser), 'playline_eraser_upkeep_age_seconds', 'work="scrub"');
  await until('the scrub has completed', async () => (await ages()) > 0);
  await eraser.close();
  rig.running.eraser = await rig.start('eraser');
}
