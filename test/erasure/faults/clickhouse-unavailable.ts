import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { asVisitor } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, STATEMENTS } from './scene.ts';

/** All steps except the last, at which the test drops the response to the receipt's insert instead. */
const OUTAGES_AT = Object.values(STATEMENTS).slice(0, -1);

const faultsOf = async (rig: ErasureRig) => sumOf(await metricsOf(rig.running.eraser), 'playline_eraser_faults_total');

export async function loseClickHouse(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { clickhouse } = rig.world.proxies;
  const faultsBefore = await faultsOf(rig);
  let nextSeen = clickhouse.waitForRequest(OUTAGES_AT[0]!);
  const lost = clickhouse.dropResponse(STATEMENTS['swept, without a receipt']);
  const erasureId = await rig.erase(asVisitor(scene.person));
  for (const at of OUTAGES_AT.keys()) {
    await nextSeen;
    const faults = await faultsOf(rig);
    await clickhouse.set('refuse');
    await until('the eraser reports a fault', async () => (await faultsOf(rig)) > faults);
    const next = OUTAGES_AT[at + 1];
    if (next !== undefined) nextSeen = clickhouse.waitForRequest(next);
    await clickhouse.set('open');
  }
  await lost;
  await scene.expectErased(erasureId);
  expect(await faultsOf(rig)).toBeGreaterThanOrEqual(faultsBefore + OUTAGES_AT.length + 1);
}
