import { readFileSync } from 'node:fs';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import type { ServiceName, ServiceProcess } from '../../faults/world/service-process.ts';
import type { TlsGate } from './tls-gate.ts';

export type Settings = Record<string, string>;
export type Store = 'Kafka' | 'Redis' | 'ClickHouse' | 'the schema registry';

/** Connection attempts of a service per second. A client that retries without a pause makes hundreds. */
const KNOCKS_A_SECOND_MAX = 8;
const WATCH_MS = 3_000;
/** Log lines within half a minute. A client may report the same with another text. */
const SENTENCES_MAX = 2;

export interface Refusal {
  store: Store;
  services: readonly ServiceName[];
  sentence: RegExp;
  secrets?: readonly string[];
}

async function readinessOf({ adminUrl }: ServiceProcess) {
  const answer = await fetch(`${adminUrl}/readyz`, { signal: AbortSignal.timeout(3_000) });
  return (await answer.json()) as { ready: boolean; reasons?: Record<string, string> };
}

/** Log lines about a store, and everything that the process shows: log, readiness and metrics. */
async function shownBy({ logFile, adminUrl }: ServiceProcess): Promise<{ lines: string[]; all: string }> {
  const log = readFileSync(logFile, 'utf8');
  const answers = ['/metrics', '/readyz'].map(async (path) => (await fetch(adminUrl + path)).text());
  const lines = log.split('\n').filter((line) => line.includes('cannot be used'));
  return { lines, all: log + (await Promise.all(answers)).join() };
}

async function expectNoSecrets(processes: readonly ServiceProcess[], secrets: readonly string[]): Promise<void> {
  for (const service of processes) {
    const { all } = await shownBy(service);
    for (const secret of secrets) expect(all.includes(secret), `${service.name} shows a secret`).toBe(false);
  }
}

/** Checks a refusal: one clear sentence, no flood of attempts, not ready with the reason, and no secret. */
export async function checkRefusal(
  { store, services, sentence, secrets = [] }: Refusal,
  processes: readonly ServiceProcess[],
  gate: TlsGate,
): Promise<void> {
  for (const service of processes)
    await until(`${service.name} gives the reason`, async () => {
      const { ready, reasons } = await readinessOf(service);
      return !ready && sentence.test(reasons?.[store] ?? '');
    });
  const before = gate.knocks;
  const startMs = performance.now();
  await until('the attempts have been watched', async () => {
    for (const service of processes) expect((await readinessOf(service)).ready).toBe(false);
    return performance.now() - startMs > WATCH_MS;
  });
  const seconds = (performance.now() - startMs) / 1_000;
  const knocks = (gate.knocks - before) / seconds / services.length;
  console.log(`${store}: ${knocks.toFixed(1)} attempts a second and service`);
  expect(knocks).toBeLessThan(KNOCKS_A_SECOND_MAX);
  for (const service of processes) {
    const found = (await shownBy(service)).lines.filter((line) => sentence.test(line));
    expect(found.length, service.name).toBeGreaterThan(0);
    expect(found.length, service.name).toBeLessThanOrEqual(SENTENCES_MAX);
  }
  await expectNoSecrets(processes, secrets);
}

/** Waits until the processes use the repaired store, which must show no secret either. */
export async function checkRecovery(processes: readonly ServiceProcess[], secrets: readonly string[] = []) {
  for (const service of processes)
    await until(`${service.name} is ready again`, async () => (await readinessOf(service)).ready, 30_000);
  await expectNoSecrets(processes, secrets);
}
