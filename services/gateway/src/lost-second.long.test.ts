import { openRedisPeople } from '@playline/people/redis';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consentChange, getConsent, putConsent } from './test/audience-calls.ts';
import { type CrashableRedis, openCrashableRedis } from './test/crashable-redis.ts';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

/** Maximum time to recover after Redis has restarted. An update interrupted by the crash takes up to 5 s. */
const RECOVERY_MAX_MS = 8_000;
/** Longer than the lifetime of the gateway's caches. */
const WATCHED_MS = 3_000;

let redis: CrashableRedis;
let stores: KeyStores;
let gateways: GatewayProcess[];
beforeAll(async () => {
  redis = await openCrashableRedis();
  stores = await openKeyStores({ redisUrl: redis.url });
  const people = await openRedisPeople({ url: redis.url });
  await people.rebuild.mintEpoch();
  await people.close();
  // Both gateways need the same pepper to compute the same identity keys. High limits allow repeated requests.
  const settings = {
    IDENTITY_PEPPER: 'ab'.repeat(32),
    RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '1000000',
    RATE_LIMIT_CONSENTS_PER_S: '100000',
    RATE_LIMIT_CONSENTS_BURST: '100000',
  };
  const open = () => openProcess(stores.topicPrefix, { REDIS_URL: redis.url, ...settings });
  gateways = await Promise.all([open(), open()]);
  for (const { adminUrl } of gateways)
    await until('the gateway is ready', async () => (await fetch(`${adminUrl}/readyz`)).ok);
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await stores.close();
  await redis.close();
});

const change = (environment: string, action: string, ...options: string[]) =>
  stores.keys(action, '--environment', environment, '--kind', 'publishable', '--json', ...options);
const changeKey = async (environment: string, action = 'create', ...options: string[]) =>
  (JSON.parse(await change(environment, action, ...options)) as { key: string }).key;
const postWithKey = (key: string) =>
  Promise.all(gateways.map(async (gateway) => (await gateway.post(key, { messages: [message()] })).status));

/** Crashes Redis, then completes its fences as the eraser would. No person was erased in these tests. */
async function crash(): Promise<void> {
  await redis.crash();
  const people = await openRedisPeople({ url: redis.url });
  await people.guards.completeFences((await people.guards.fenceStatus()).run);
  await people.close();
}

/** Posts with each key for a while, and returns all response statuses per key. */
async function watch(keys: Record<string, string>): Promise<Record<string, number[]>> {
  const entries = Object.keys(keys).map((name) => [name, new Set<number>()] as const);
  const endMs = performance.now() + WATCHED_MS;
  while (performance.now() < endMs)
    for (const [name, statuses] of entries) for (const status of await postWithKey(keys[name]!)) statuses.add(status);
  return Object.fromEntries(entries.map(([name, statuses]) => [name, [...statuses].sort()]));
}

it('after a crash in which Redis lost its last writes, lost key changes are restored, and valid keys are always accepted', async () => {
  const [revoked, refreshed] = [await changeKey('production'), await changeKey('development')];
  await stores.projects('create', '--name', 'other', '--id', 'other');
  const valid = (
    JSON.parse(
      await stores.keys(
        'create',
        '--environment',
        'production',
        '--kind',
        'publishable',
        '--project',
        'other',
        '--json',
      ),
    ) as { key: string }
  ).key;
  for (const key of [revoked, refreshed, valid]) expect(await postWithKey(key)).toEqual([200, 200]);
  redis.saveState();
  await change('production', 'revoke', '--stops', 'now');
  const successor = await changeKey('development', 'refresh', '--stops', 'now');
  for (const key of [revoked, refreshed])
    await until('the key is refused', async () => (await postWithKey(key)).every((status) => status === 401));
  await crash();
  // No gateway accepts an invalid key or refuses a valid key. While a gateway cannot verify a key, it returns 500.
  const observed = await watch({ revoked, refreshed, valid });
  expect(observed.revoked).not.toContain(200);
  expect(observed.refreshed).not.toContain(200);
  expect(observed.valid).toEqual([200]);
  const allStatuses = async () => Promise.all([revoked, refreshed, valid, successor].map(postWithKey));
  await until(
    'all key changes are restored',
    async () => String(await allStatuses()) === String([401, 401, 401, 401, 200, 200, 200, 200]),
    RECOVERY_MAX_MS,
  );
});

it('after a crash in which Redis lost its last writes, no gateway returns an outdated consent', async () => {
  const key = await changeKey('production');
  const [first, second] = gateways.map(({ url }) => ({ url, key }));
  const statusAt = async (caller: { url: string; key: string }, anonymousId: string) => {
    const response = await getConsent(caller, `?anonymousId=${anonymousId}`);
    return response.status === 200 ? ((await response.json()) as { status: string }).status : response.status;
  };
  const ids = Array.from({ length: 20 }, (_, at) => `player-${at}`);
  for (const anonymousId of ids) await putConsent(first!, consentChange({ anonymousId, status: 'full' }));
  await until('the second gateway returns consents', async () => (await statusAt(second!, ids[0]!)) === 'full');
  redis.saveState();
  for (const [at, anonymousId] of ids.entries())
    expect((await putConsent(at % 2 ? first! : second!, consentChange({ anonymousId, status: 'none' }))).status).toBe(
      204,
    );
  await crash();
  const statuses = new Set<string | number>();
  const endMs = performance.now() + WATCHED_MS;
  while (performance.now() < endMs)
    for (const anonymousId of ids)
      for (const caller of [first!, second!]) statuses.add(await statusAt(caller, anonymousId));
  expect([...statuses].filter((status) => status !== 500)).toEqual(['none']);
  expect(await Promise.all(ids.map((id) => statusAt(second!, id)))).toEqual(ids.map(() => 'none'));
});
