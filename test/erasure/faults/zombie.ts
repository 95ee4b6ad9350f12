import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { openClickHouseProxy } from '../../faults/writer-clickhouse-proxy.ts';
import { expectErased, survivorsOf } from '../checks.ts';
import { asVisitor, track } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { awaitFences, createScene } from './scene.ts';

const MAINTENANCE_NOW = new URL('maintenance-now.ts', import.meta.url).href;
const ROWS = 3;

export async function insertLate(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  await rig.running['event-writer'].close();
  const gate = await openClickHouseProxy(rig.world.deployment.engine.url);
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
  await awaitFences(rig, scene.person.keys);
  rig.running['event-writer'] = await rig.start('event-writer');
  const { cutoffAt } = await expectErased(rig, erasureId, scene.person.keys);
  released.resolve();
  await gate.settled();
  const survivors = await survivorsOf(rig, scene.person.keys, cutoffAt);
  expect(survivors).toMatchObject([{ table: 'events', as: 'own', rows: ROWS }]);
  zombie.signal('SIGCONT');
  await scrubByEraser(rig, async () => (await survivorsOf(rig, scene.person.keys, cutoffAt)).length === 0);
  await scene.expectErased(erasureId);
  await zombie.close();
  await gate.close();
  await scene.expectErased(erasureId);
}

/** Starts an eraser that runs its daily work immediately. */
async function scrubByEraser(rig: ErasureRig, isSwept: () => Promise<boolean>): Promise<void> {
  await rig.running.eraser.close();
  const eraser = await rig.start('eraser', { NODE_OPTIONS: `--import=${MAINTENANCE_NOW}` });
  const readSurvivors = async () => sumOf(await metricsOf(eraser), 'playline_eraser_survivors_total', 'table="events"');
  await until('the survivors are counted', async () => (await readSurvivors()) >= ROWS);
  expect(await readSurvivors()).toBe(ROWS);
  // Wait before closing: a closed eraser aborts its scrub, and the next eraser starts a scrub only after five minutes.
  await until('the survivors are deleted', isSwept);
  const readAge = async () => sumOf(await metricsOf(eraser), 'playline_eraser_upkeep_age_seconds', 'work="scrub"');
  await until('the scrub has completed', async () => (await readAge()) > 0);
  await eraser.close();
  rig.running.eraser = await rig.start('eraser');
}
