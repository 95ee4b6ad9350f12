import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { asVisitor } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, MOMENTS } from './scene.ts';

/** All steps except the last, at which the test drops the response to the receipt's insert instead. */
const CUT_AT = Object.values(MOMENTS).slice(0, -1);

const faultsOf = async (rig: ErasureRig) => sumOf(await metricsOf(rig.running.eraser), 'playline_eraser_faults_total');

export async function loseClickHouse(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { clickhouse } = rig.world.proxies;
  const faultsBefore = await faultsOf(rig);
  let nextSeen = clickhouse.waitForRequest(CUT_AT[0]!);
  const lost = clickhouse.dropResponse(MOMENTS['swept, without a receipt']);
  const erasureId = await rig.erase(asVisitor(scene.person));
  for (const at of CUT_AT.keys()) {
    await nextSeen;
    const faults = await faultsOf(rig);
    await clickhouse.set('refuse');
    await until('the eraser reports a fault', async () => (await faultsOf(rig)) > faults);
    const next = CUT_AT[at + 1];
    if (next !== undefined) nextSeen = clickhouse.waitForRequest(next);
    await clickhouse.set('open');
  }
  await lost;
  await scene.ends(erasureId);
  expect(await faultsOf(rig)).toBeGreaterThanOrEqual(faultsBefore + CUT_AT.length + 1);
}
