import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { expect, onTestFinished } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import type { ServiceProcess } from '../../faults/world/service-process.ts';
import { openWire } from '../../faults/world/wire.ts';
import { expectErased, expectNoHold, expectNothing } from '../checks.ts';
import { asVisitor, rowsAbout, stored } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, isLinked, MOMENTS, messagesOf } from './scene.ts';

const KILLED_AT = Object.values(MOMENTS);
/** Metrics that show that an eraser's work has ended: done, failed, or handed over to another process. */
const ENDS = ['playline_eraser_requests_total', 'playline_eraser_faults_total', 'playline_eraser_handovers_total'];

/** Starts erasers behind a separate wire each, so that the test sees which one does something. */
interface Watch {
  /** Starts the next eraser. */
  start(): Promise<void>;
  // Finds the first eraser that sends this text to ClickHouse, running already or started later. An eraser may work
  // before it reports that it is ready.
  firstToSend(text: RegExp): Promise<() => ServiceProcess>;
  close(): Promise<void>;
}

/**
 * Close it at the end of the test, passed or not. An eraser left running would do the work of the next test's eraser.
 * @param erasersMax how many will be started
 */
async function openWatch(rig: ErasureRig, erasersMax: number): Promise<Watch> {
  const { port } = new URL(rig.world.deployment.engine.url);
  const wires = await Promise.all((await freePorts(erasersMax)).map((own) => openWire(own, () => Number(port))));
  const processes: ServiceProcess[] = [];
  const watch: Watch = {
    async start() {
      const { port: own } = wires[processes.length]!;
      const settings = { CLICKHOUSE_URL: `http://127.0.0.1:${own}`, SESSION_TIMEOUT_MS: '2000' };
      processes.push(await rig.world.start('eraser', rig.settingsWith(settings)));
    },
    firstToSend: (text) =>
      Promise.race(wires.map(async (wire, at) => wire.sees(text).then(() => () => processes[at]!))),
    async close() {
      await Promise.all(processes.map((each) => each.close()));
      await Promise.all(wires.map((wire) => wire.close()));
    },
  };
  onTestFinished(() => watch.close());
  return watch;
}

export async function killErasers(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  await rig.running.eraser.close();
  const watch = await openWatch(rig, KILLED_AT.length + 2);
  for (let count = 0; count < 2; count++) await watch.start();
  let doing = watch.firstToSend(KILLED_AT[0]!);
  const erasureId = await rig.erase(asVisitor(scene.person));
  for (const at of KILLED_AT.keys()) {
    const victim = (await doing)();
    victim.signal('SIGKILL');
    const next = KILLED_AT[at + 1];
    if (next !== undefined) doing = watch.firstToSend(next);
    expect(await victim.exited).toBe('SIGKILL');
    await watch.start();
  }
  await scene.ends(erasureId);
  await watch.close();
  rig.running.eraser = await rig.start('eraser');
}

export async function pauseAnEraser(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { person } = scene;
  await rig.running.eraser.close();
  const watch = await openWatch(rig, 2);
  for (let count = 0; count < 2; count++) await watch.start();
  const fencing = watch.firstToSend(MOMENTS['noted, not fenced']);
  const erasureId = await rig.erase(asVisitor(person));
  await fencing;
  // Wait until the fences exist, because erasers send a similar list when they resolve a person.
  const paused = (await watch.firstToSend(MOMENTS['about to sweep']))();
  paused.signal('SIGSTOP');
  const { cutoffAt } = await expectErased(rig, erasureId, person.keys);
  const later = messagesOf(person);
  await rig.send(later);
  await stored(rig, later);
  await until('the person is linked again', () => isLinked(rig, person));
  const kept = await rowsAbout(rig, person);
  paused.signal('SIGCONT');
  await until('it has gone on to its end', async () => {
    const text = await metricsOf(paused);
    return ENDS.some((name) => sumOf(text, name) > 0);
  });
  await expectNoHold(rig, erasureId);
  // After a fault it works on, and what is derived from events is deleted and written again in two steps.
  await until('no row up to the cut-off is left, and the derived rows are those of the events', async () => {
    await expectNothing(rig, person.keys, cutoffAt);
    return true;
  });
  await until('the person is linked still', () => isLinked(rig, person));
  // Links that are later than the cut-off were decided again, so rows may be added but none removed.
  const now = await rowsAbout(rig, person);
  for (const [table, rows] of Object.entries(kept))
    if (rows.some((row) => !now[table]!.includes(row))) throw new Error(`rows of ${table} are gone`);
  await scene.bystanderIsWhole();
  await watch.close();
  rig.running.eraser = await rig.start('eraser');
}
