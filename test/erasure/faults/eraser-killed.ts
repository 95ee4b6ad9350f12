import { freePorts } from '@playline/infra/ports';
import { until } from '@playline/testkit';
import { expect, onTestFinished } from 'vitest';
import { metricsOf, sumOf } from '../../faults/world/metrics.ts';
import type { ServiceProcess } from '../../faults/world/service-process.ts';
import { startStoreProxy } from '../../faults/world/store-proxy.ts';
import { expectErased, expectNoHold, expectNoRows } from '../checks.ts';
import { asVisitor, awaitStored, readRows } from '../people.ts';
import type { ErasureRig } from '../rig.ts';
import { createScene, isLinked, messagesOf, STATEMENTS } from './scene.ts';

const KILLED_AT = Object.values(STATEMENTS);
/** Metrics that increase when an eraser's work ends: completed, failed or handed over. */
const ENDS = ['playline_eraser_requests_total', 'playline_eraser_faults_total', 'playline_eraser_handovers_total'];

/** Proxies each eraser's connection to ClickHouse, so that the test detects which eraser sends a statement. */
interface Watch {
  start(): Promise<void>;
  // Resolves with the first eraser, including erasers started later, that sends a matching statement to ClickHouse. An
  // eraser may send statements before it is ready.
  firstToSend(text: RegExp): Promise<() => ServiceProcess>;
  close(): Promise<void>;
}

/**
 * Closed even if the test fails because a remaining eraser would interfere with the next test.
 * @param erasersMax maximum number of erasers to start
 */
async function openWatch(rig: ErasureRig, erasersMax: number): Promise<Watch> {
  const { port } = new URL(rig.world.deployment.engine.url);
  const proxies = await Promise.all(
    (await freePorts(erasersMax)).map((proxyPort) => startStoreProxy(proxyPort, () => Number(port))),
  );
  const processes: ServiceProcess[] = [];
  const watch: Watch = {
    async start() {
      const { port: proxyPort } = proxies[processes.length]!;
      const settings = { CLICKHOUSE_URL: `http://127.0.0.1:${proxyPort}`, SESSION_TIMEOUT_MS: '2000' };
      processes.push(await rig.world.start('eraser', rig.settingsWith(settings)));
    },
    firstToSend: (text) =>
      Promise.race(proxies.map(async (proxy, at) => proxy.waitForRequest(text).then(() => () => processes[at]!))),
    async close() {
      await Promise.all(processes.map((each) => each.close()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
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
  let sender = watch.firstToSend(KILLED_AT[0]!);
  const erasureId = await rig.erase(asVisitor(scene.person));
  for (const at of KILLED_AT.keys()) {
    const victim = (await sender)();
    victim.signal('SIGKILL');
    const next = KILLED_AT[at + 1];
    if (next !== undefined) sender = watch.firstToSend(next);
    expect(await victim.exited).toBe('SIGKILL');
    await watch.start();
  }
  await scene.expectErased(erasureId);
  await watch.close();
  rig.running.eraser = await rig.start('eraser');
}

export async function pauseEraser(rig: ErasureRig): Promise<void> {
  const scene = await createScene(rig);
  const { person } = scene;
  await rig.running.eraser.close();
  const watch = await openWatch(rig, 2);
  for (let count = 0; count < 2; count++) await watch.start();
  const fenceSender = watch.firstToSend(STATEMENTS['progress stored, not fenced']);
  const erasureId = await rig.erase(asVisitor(person));
  await fenceSender;
  // Wait for the fences first because erasers also insert targets when they resolve a person.
  const paused = (await watch.firstToSend(STATEMENTS['ready to sweep']))();
  paused.signal('SIGSTOP');
  const { cutoffAt } = await expectErased(rig, erasureId, person.keys);
  const later = messagesOf(person);
  await rig.send(later);
  await awaitStored(rig, later);
  await until('the person is linked again', () => isLinked(rig, person));
  const kept = await readRows(rig, person);
  paused.signal('SIGCONT');
  await until('the paused eraser has finished', async () => {
    const text = await metricsOf(paused);
    return ENDS.some((name) => sumOf(text, name) > 0);
  });
  await expectNoHold(rig, erasureId);
  // Retry because the resumed eraser deletes and rederives rows in two steps.
  await until('no rows up to the cut-off remain, and the derived rows match the events', async () => {
    await expectNoRows(rig, person.keys, cutoffAt);
    return true;
  });
  await until('the person is still linked', () => isLinked(rig, person));
  // Later links were decided a second time, so rows may be added but not removed.
  const now = await readRows(rig, person);
  for (const [table, rows] of Object.entries(kept))
    if (rows.some((row) => !now[table]!.includes(row))) throw new Error(`rows are missing from ${table}`);
  await scene.expectBystanderUnchanged();
  await watch.close();
  rig.running.eraser = await rig.start('eraser');
}
