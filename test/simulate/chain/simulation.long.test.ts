import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { freePorts } from '@playline/infra/ports';
import { bareEnvironment, openOwnStores, openRedisDatabase, openServiceProcesses } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../../services/operator/src/command.ts';

const mainOf = (service: string) => new URL(`../../../services/${service}/src/main.ts`, import.meta.url).pathname;
const PARTITIONS = 2;
const PROCESSES_MS = 240_000;

async function openChain() {
  const stores = await openOwnStores({ partitions: PARTITIONS });
  const redis = await openRedisDatabase();
  const [port] = await freePorts(1);
  const environment = { ...stores.environment, REDIS_URL: redis.url, LOG_LEVEL: 'error' };
  const writers = openServiceProcesses(mainOf('activity-writer'), {
    ...environment,
    CONSUMER_GROUP: `${stores.prefix}activity-writer`,
  });
  const interfaces = openServiceProcesses(mainOf('chain-api'), {
    ...environment,
    HTTP_PORT: String(port),
    CHAINS: '[{"name":"demo-chain","id":"eip155:31337"}]',
    CURSOR_KEYS: `1=${'ab'.repeat(32)}`,
    ACTIVITY_PARTITIONS: String(PARTITIONS),
  });
  onTestFinished(async () => {
    await Promise.all([writers.close(), interfaces.close()]);
    await Promise.all([redis.close(), stores.close()]);
  }, PROCESSES_MS);
  await Promise.all([writers.start(), interfaces.start()]);
  return { environment, url: `http://127.0.0.1:${port}` };
}

function runSimulation(environment: Readonly<Record<string, string>>, args: readonly string[]) {
  const main = new URL('../main.ts', import.meta.url).pathname;
  const options = { env: { ...bareEnvironment(), ...environment }, cwd: tmpdir() };
  return new Promise<{ code: number | null; out: string }>((resolve) => {
    const child = execFile(process.execPath, [main, ...args], options, (_, out) =>
      resolve({ code: child.exitCode, out }),
    );
  });
}

it(
  'two chain simulations on the same chain find no differences',
  async () => {
    const { environment, url } = await openChain();
    const args = ['--chain', 'demo-chain', '--url', url, '--yes', '--rate', '0', '--json'];
    const first = await runSimulation(environment, [...args, '--activities', '800', '--seed', '1']);
    const result = JSON.parse(first.out);
    expect(result.differences).toEqual([]);
    expect(result).toMatchObject({ ok: true, chain: 'demo-chain', sent: { activities: 800 }, unknownVersions: 0 });
    expect(result.served).toEqual({ activities: 800, versionsBefore: 0, strangers: 0 });
    expect(result.sent.laterVersions).toBeGreaterThan(20);
    expect(result.sent.refused).toBeGreaterThan(20);
    expect(result.calls.made).toBeLessThan(200);
    expect(first.code).toBe(EXIT.ok);
    // Runs with the same seed have different ids and contracts, so they do not affect each other.
    const second = await runSimulation(environment, [...args, '--activities', '40', '--seed', '1']);
    expect(JSON.parse(second.out)).toMatchObject({
      ok: true,
      served: { activities: 40, versionsBefore: 800, strangers: 0 },
    });
  },
  PROCESSES_MS,
);
