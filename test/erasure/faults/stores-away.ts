import { until } from '@playline/testkit';
import { expect } from 'vitest';
import { query } from '../../faults/world/clickhouse.ts';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import { asVisitor } from '../people.ts';
import { ENVIRONMENT_ID, type ErasureRig } from '../rig.ts';
import { MOMENTS } from './moments.ts';
import { createScene } from './scene.ts';

/** All steps except the last. At the last step the test drops the reply of the receipt's insert instead. */
const CUT_AT = Object.values(MOMENTS).slice(0, -1);

const faultsOf = async (rig: ErasureRig, label = '') =>
  sumOf(await metricsOf(rig.running.eraser), 'playline_eraser_faults_total', label);

export async function loseClickHouse(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { clickhouse } = rig.world.wires;
  const begun = await faultsOf(rig);
  let sight = clickhouse.sees(CUT_AT[0]!);
  const lost = clickhouse.loseAnswer(MOMENTS['swept, without a receipt']);
  const erasureId = await rig.erase(asVisitor(scene.person));
  for (const at of CUT_AT.keys()) {
    await sight;
    const faults = await faultsOf(rig);
    await clickhouse.set('refuse');
    await until('the eraser has noticed', async () => (await faultsOf(rig)) > faults);
    const next = CUT_AT[at + 1];
    if (next !== undefined) sight = clickhouse.sees(next);
    await clickhouse.set('open');
  }
  await lost;
  await scene.ends(erasureId);
  expect(await faultsOf(rig)).toBeGreaterThanOrEqual(begun + CUT_AT.length + 1);
}

export async function failAChange(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { engine } = rig.world.deployment;
  // A mutation that always fails. Later mutations of the table wait for it.
  const broken = `UPDATE trace_id = toString(throwIf(environment_id = '${ENVIRONMENT_ID}')) WHERE 1`;
  await query(engine, `ALTER TABLE events ${broken} SETTINGS mutations_sync = 0`);
  const erasureId = await rig.erase(asVisitor(scene.person));
  await until('the sweep has failed', async () => (await faultsOf(rig, 'during="sweep"')) > 0);
  expect(await rig.receiptOf(erasureId)).toBeNull();
  await query(engine, "KILL MUTATION WHERE database = currentDatabase() AND position(command, 'throwIf') > 0 SYNC");
  await scene.ends(erasureId);
}
