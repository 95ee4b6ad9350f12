import { readFileSync } from 'node:fs';
import { until } from '@playline/testkit';
import { expect } from 'vitest';
import type { ServiceName, ServiceProcess } from '../../faults/world/service-process.ts';
import type { TlsProxy } from './tls-proxy.ts';

export type Settings = Record<string, string>;
export type Store = 'Kafka' | 'Redis' | 'ClickHouse' | 'the schema registry';

/** Maximum connection attempts per second and service. A client that retries without a delay makes hundreds. */
const ATTEMPTS_PER_SECOND_MAX = 8;
const WATCH_MS = 3_000;
/** Maximum log lines within half a minute. A client may report the same fault with different messages. */
const LINES_MAX = 2;

export interface Refusal {
  store: Store;
  services: readonly ServiceName[];
  message: RegExp;
  secrets?: readonly string[];
}

async function readinessOf({ adminUrl }: ServiceProcess) {
  const response = await fetch(`${adminUrl}/readyz`, { signal: AbortSignal.timeout(3_000) });
  return (await response.json()) as { ready: boolean; reasons?: Record<string, string> };
}

/** Reads a process's log lines about stores, and its complete output: log, readiness and metrics. */
async function outputOf({ logFile, adminUrl }: ServiceProcess): Promise<{ lines: string[]; output: string }> {
  const log = readFileSync(logFile, 'utf8');
  const responses = ['/metrics', '/readyz'].map(async (path) => (await fetch(adminUrl + path)).text());
  const lines = log.split('\n').filter((line) => line.includes('cannot be used'));
  return { lines, output: log + (await Promise.all(responses)).join() };
}

async function expectNoSecrets(processes: readonly ServiceProcess[], secrets: readonly string[]): Promise<void> {
  for (const service of processes) {
    const { output } = await outputOf(service);
    for (const secret of secrets) expect(output.includes(secret), `${service.name} shows a secret`).toBe(false);
  }
}

/** Checks a refusal: services log one clear message, retry with delays, report the reason, and reveal no secrets. */
export async function checkRefusal(
  { store, services, message, secrets = [] }: Refusal,
  processes: readonly ServiceProcess[],
  proxy: TlsProxy,
): Promise<void> {
  for (const service of processes)
    await until(`${service.name} reports the reason`, async () => {
      const { ready, reasons } = await readinessOf(service);
      return !ready && message.test(reasons?.[store] ?? '');
    });
  const before = proxy.attempts;
  const startMs = performance.now();
  await until('the attempts are counted', async () => {
    for (const service of processes) expect((await readinessOf(service)).ready).toBe(false);
    return performance.now() - startMs > WATCH_MS;
  });
  const seconds = (performance.now() - startMs) / 1_000;
  const attempts = (proxy.attempts - before) / seconds / services.length;
  console.log(`${store}: ${attempts.toFixed(1)} attempts per second and service`);
  expect(attempts).toBeLessThan(ATTEMPTS_PER_SECOND_MAX);
  for (const service of processes) {
    const found = (await outputOf(service)).lines.filter((line) => message.test(line));
    expect(found.length, service.name).toBeGreaterThan(0);
    expect(found.length, service.name).toBeLessThanOrEqual(LINES_MAX);
  }
  await expectNoSecrets(processes, secrets);
}

/** Waits until the processes use the repaired store, and checks that they reveal no secrets. */
export async function checkRecovery(processes: readonly ServiceProcess[], secrets: readonly string[] = []) {
  for (const service of processes)
    await until(`${service.name} is ready again`, async () => (await readinessOf(service)).ready, 30_000);
  await expectNoSecrets(processes, secrets);
}
