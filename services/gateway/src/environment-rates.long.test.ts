import { openWire, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

let stores: KeyStores;
let key: string;
beforeAll(async () => {
  stores = await openKeyStores();
  key = JSON.parse(await stores.keys('create', '--environment', 'production', '--kind', 'publishable', '--json')).key;
});
afterAll(() => stores.close());

async function open(environment: Record<string, string> = {}): Promise<GatewayProcess> {
  const gateway = await openProcess(stores.topicPrefix, { REDIS_URL: stores.redisUrl, ...environment });
  onTestFinished(async () => void (await gateway.close()));
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
  return gateway;
}

const limit = (...texts: string[]) =>
  stores.projects('limit', '--project', 'demo', '--environment', 'production', ...texts, '--json');
const policyOf = async ({ post }: GatewayProcess) =>
  (await post(key, { messages: [message()] })).headers.get('ratelimit-policy');

it('the rate of an environment in its project is followed by two running gateways within a second of each change, and is the setting without one', async () => {
  const gateways = [await open(), await open()];
  const changes = [
    [['--cap', '600/1200'], '"messages";q=1200;w=2'],
    [['--limit', '6/12'], '"messages";q=12;w=2'],
    [['--cap', 'none', '--limit', 'none'], '"messages";q=10000;w=2'],
  ] as const;
  for (const [texts, policy] of changes) {
    await limit(...texts);
    const changedAt = performance.now();
    for (const gateway of gateways) await until('it goes by it', async () => (await policyOf(gateway)) === policy);
    expect(performance.now() - changedAt).toBeLessThan(1000);
  }
});

it('the rate of an environment in its project is enforced, and stays as last known while Redis is away', async () => {
  await limit('--cap', '1/3');
  const url = new URL(stores.redisUrl);
  const wire = await openWire(Number(new URL(testStores().redis).port));
  onTestFinished(() => wire.close());
  url.port = String(wire.port);
  const gateway = await open({ REDIS_URL: url.href });
  await until('it goes by it', async () => (await policyOf(gateway)) === '"messages";q=3;w=3');
  const { status } = await gateway.post(key, { messages: Array.from({ length: 9 }, () => message()) });
  expect(status).toBeLessThan(500);
  expect((await gateway.post(key, { messages: [message()] })).status).toBe(429);
  wire.mode = 'cut';
  expect(await policyOf(gateway)).toBe('"messages";q=3;w=3');
});
