import { until } from '@playline/testkit';
import { expect } from 'vitest';
import type { ServiceName, ServiceProcess } from '../../faults/world/service-process.ts';
import { readinessOf, shownBy } from './service-answers.ts';
import type { TlsGate } from './tls-gate.ts';

export type Settings = Record<string, string>;
export type Store = 'Kafka' | 'Redis' | 'ClickHouse' | 'the schema registry';

/** Connection attempts of a service per second. A client that retries without a pause makes hundreds. */
const KNOCKS_A_SECOND_MAX = 8;
const WATCH_MS = 3_000;
/**
 * Log lines within half a minute: each sentence once, and a second time when a client reports the same with another text.
 */
const SENTENCES_MAX = 2;

export interface Refusal {
  store: Store;
  services: readonly ServiceName[];
  sentence: RegExp;
  settings?: Settings;
  /** Texts that must not appear anywhere. */
  secrets?: readonly string[];
  /** Repairs the store. Absent: the test does not wait for recovery. */
  repair?(): Promise<void> | void;
}

/**
 * Checks every refusal: one clear sentence, no flood of attempts, not ready with the reason, no secret, and recovery
 * after the repair.
 */
export async function checkRefusal(
  { store, services, sentence, secrets = [], repair }: Refusal,
  processes: readonly ServiceProcess[],
  gate: TlsGate,
): Promise<void> {
  for (const service of processes) {
    await until(`${service.name} gives the reason`, async () => {
      const { ready, reasons } = await readinessOf(service);
      return !ready && sentence.test(reasons?.[store] ?? '');
    });
  }
  const before = gate.knocks;
  const startMs = performance.now();
  await until(
    'the attempts have been watched',
    async () => {
      for (const service of processes) expect((await readinessOf(service)).ready).toBe(false);
      return performance.now() - startMs > WATCH_MS;
    },
    2 * WATCH_MS,
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const knocks = (gate.knocks - before) / seconds / services.length;
  console.log(`${store}: ${knocks.toFixed(1)} attempts a second and service`);
  expect(knocks).toBeLessThan(KNOCKS_A_SECOND_MAX);
  for (const service of processes) {
    const { lines, all } = await shownBy(service);
    const found = lines.filter((line) => sentence.test(line));
    expect(found.length, service.name).toBeGreaterThan(0);
    expect(found.length, service.name).toBeLessThanOrEqual(SENTENCES_MAX);
    for (const secret of secrets) expect(all.includes(secret), `${service.name} shows a secret`).toBe(false);
  }
  if (repair === undefined) return;
  await repair();
  for (const service of processes)
    await until(`${service.name} is ready again`, async () => (await readinessOf(service)).ready, 30_000);
  for (const service of processes) {
    const { all } = await shownBy(service);
    for (const secret of secrets) expect(all.includes(secret), `${service.name} shows a secret`).toBe(false);
  }
}
