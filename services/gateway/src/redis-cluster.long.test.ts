import { cellOf } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { type ClusterNode, openRedisCluster, type TestRedisCluster, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consentChange, getConsent, putConsent } from './test/audience-calls.ts';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

const CELLS = 2;
/** Twice the node timeout, the election, and the catch-up from the log. */
const OBSERVED_MS = 7_500;

let cluster: TestRedisCluster;
let stores: KeyStores;
let gateway: GatewayProcess;
beforeAll(async () => {
  cluster = await openRedisCluster();
  const settings = { REDIS_URL: cluster.url, REDIS_CLUSTER: 'true', IDENTITY_CELLS: String(CELLS) };
  stores = await openKeyStores({ redisUrl: cluster.url, settings });
  await withPeople((people) => people.rebuild.mintEpoch());
  gateway = await openProcess(stores.topicPrefix, { ...settings, RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000' });
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
});
afterAll(async () => {
  await gateway.close();
  await stores.close();
  await cluster.close();
});

async function withPeople<T>(use: (people: Awaited<ReturnType<typeof openRedisPeople>>) => Promise<T>): Promise<T> {
  const people = await openRedisPeople({ url: cluster.url, cluster: true, cells: CELLS });
  return use(people).finally(() => people.close());
}

const createKey = async (environment: string, ...more: string[]) => {
  const options = ['--environment', environment, '--kind', 'publishable', '--json', ...more];
  return (JSON.parse(await stores.keys('create', ...options)) as { key: string }).key;
};
const post = async (key: string) => (await gateway.post(key, { messages: [message()] })).status;

/** Suspends the replica of a key, so that it lacks the writes of `change`, then kills the primary. */
async function loseWrites(key: string, change: () => Promise<void>): Promise<ClusterNode> {
  const [primary, replica] = [await cluster.primaryOf(key), await cluster.replicaOf(key)];
  replica.suspend();
  await change();
  await primary.kill();
  replica.resume();
  return primary;
}

/** Completes fences as the eraser would, once all cells respond. No person was erased in these tests. */
async function completeFences(): Promise<void> {
  const isComplete = () =>
    withPeople(async ({ guards }) => {
      await guards.completeFences((await guards.fenceStatus()).run);
      return (await guards.fenceStatus()).isComplete;
    });
  await until('the fences are complete', () => isComplete().catch(() => false));
}

it('a gateway on a cluster accepts a new key, messages and consents', async () => {
  const key = await createKey('production');
  await until('the key is accepted', async () => (await post(key)) === 200);
  expect((await putConsent({ url: gateway.url, key }, consentChange())).status).toBe(204);
  expect(await (await getConsent({ url: gateway.url, key })).json()).toMatchObject({ status: 'full' });
});

it('a revoked key stays refused after a failover to a replica that lacked the change, and a valid key stays accepted', async () => {
  await stores.projects('create', '--name', 'other', '--id', 'other');
  const other = ['--project', 'other'];
  const [valid, revoked] = [await createKey('production', ...other), await createKey('development', ...other)];
  for (const key of [valid, revoked]) await until('the key is accepted', async () => (await post(key)) === 200);
  const killed = await loseWrites('{access:keys}', async () => {
    const options = ['--environment', 'development', '--kind', 'publishable', '--json', '--stops', 'now', ...other];
    await stores.keys('revoke', ...options);
    await until('the key is refused', async () => (await post(revoked)) === 401);
  });
  const statuses = { valid: new Set<number>(), revoked: new Set<number>() };
  const endMs = performance.now() + OBSERVED_MS;
  while (performance.now() < endMs) {
    statuses.revoked.add(await post(revoked));
    statuses.valid.add(await post(valid));
  }
  expect(statuses.revoked).not.toContain(200);
  expect([...statuses.valid]).toEqual([200]);
  await killed.start();
  const successor = await createKey('development', ...other);
  await until('a new key is accepted', async () => (await post(successor)) === 200);
});

it('no outdated consent is returned after a failover to a replica that lacked the change', async () => {
  await stores.projects('create', '--name', 'third', '--id', 'third');
  const key = await createKey('production', '--project', 'third');
  await until('the key is accepted', async () => (await post(key)) === 200);
  const caller = { url: gateway.url, key };
  const ids = Array.from({ length: 10 }, (_, at) => `player-${at}`);
  for (const anonymousId of ids) await putConsent(caller, consentChange({ anonymousId, status: 'full' }));
  const cell = cellOf('third-production', CELLS);
  const killed = await loseWrites(`{c${cell}/${CELLS}}`, async () => {
    for (const anonymousId of ids)
      expect((await putConsent(caller, consentChange({ anonymousId, status: 'none' }))).status).toBe(204);
  });
  const statusOf = async (anonymousId: string) => {
    const response = await getConsent(caller, `?anonymousId=${anonymousId}`);
    return response.status === 200 ? ((await response.json()) as { status: string }).status : response.status;
  };
  const completing = completeFences();
  const seen = new Set<string | number>();
  await until('all consents are restored', async () => {
    const statuses = await Promise.all(ids.map(statusOf));
    for (const status of statuses) seen.add(status);
    return statuses.every((status) => status === 'none');
  });
  await completing;
  expect([...seen].filter((status) => status !== 500)).toEqual(['none']);
  await killed.start();
});
