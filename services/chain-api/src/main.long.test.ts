import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { CHAIN, type HistoryPage, PARTITION } from './test/open-chain-api.ts';
import { type ChainApiProcess, openProcess } from './test/open-process.ts';
import { type ChainStores, openChainStores } from './test/open-stores.ts';
import { activityRow, addressOf, NOON_US, tokenRow } from './test/rows.ts';

let stores: ChainStores;
let api: ChainApiProcess | undefined;
let proxy: StoreProxy | undefined;
beforeAll(async () => {
  stores = await openChainStores();
});
afterAll(() => stores.close());
afterEach(async () => {
  await api?.close();
  await proxy?.close();
  api = undefined;
  proxy = undefined;
});

const HISTORY = `/${CHAIN.name}/activity-history`;
const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;

async function open(environment: Record<string, string> = {}): Promise<ChainApiProcess> {
  api = await openProcess({ ...stores.environment, ...environment });
  return api;
}

async function openReady(environment: Record<string, string> = {}): Promise<ChainApiProcess> {
  const opened = await open(environment);
  await until('the chain API is ready', async () => (await opened.notReady()).length === 0);
  return opened;
}

/** Opens a proxy to Redis. @returns the proxy and the setting that uses it */
async function openRedisProxy(): Promise<{ proxy: StoreProxy; REDIS_URL: string }> {
  const url = new URL(stores.redisUrl);
  proxy = await openStoreProxy(Number(url.port));
  url.port = String(proxy.port);
  return { proxy, REDIS_URL: url.href };
}

async function idsOf({ get }: ChainApiProcess): Promise<string[]> {
  const response = await get(HISTORY);
  expect(response.status).toBe(200);
  return ((await response.json()) as HistoryPage).result.map(({ id }) => id);
}

async function degradedOf({ adminUrl }: ChainApiProcess): Promise<unknown> {
  return ((await (await fetch(`${adminUrl}/readyz`)).json()) as { degraded?: unknown }).degraded;
}

const visible = activityRow();
beforeEach(() => stores.putTokens(tokenRow()));

it('the chain API serves activities up to the watermark and tokens from real stores', async () => {
  const hidden = activityRow({ after: 10 });
  await stores.put(visible);
  await stores.putWithoutWatermark(hidden);
  const opened = await openReady();
  expect(await idsOf(opened)).toEqual([visible.id]);
  await stores.publish(PARTITION, NOON_US + 10);
  expect(await idsOf(opened)).toEqual([visible.id, hidden.id]);
  expect(await (await opened.get(TOKEN)).json()).toMatchObject({ result: { symbol: 'GOLD', chain: CHAIN } });
});

it('the chain API exports request counts, read durations and the horizon of each chain', async () => {
  const opened = await openReady();
  await opened.get(HISTORY);
  await opened.get(TOKEN);
  const text = await (await fetch(`${opened.adminUrl}/metrics`)).text();
  expect(text.match(/^playline_http_request_duration_seconds_count.*status="200"\} 1$/gm)).toHaveLength(2);
  expect(text).toContain(
    'playline_chain_api_read_duration_seconds_count{service="chain-api",operation="activity-history"} 1',
  );
  expect(text).toContain('playline_chain_api_read_duration_seconds_count{service="chain-api",operation="token"} 1');
  expect(text).toMatch(
    /playline_chain_api_horizon_timestamp_seconds\{chain="demo-chain",service="chain-api"\} 17\d{8}/,
  );
});

it('the chain API completes all accepted requests after SIGTERM and exits with code 0', async () => {
  const { child, get, close, adminUrl } = await openReady({ RATE_LIMIT_CALLS: '1000000' });
  const statuses: number[] = [];
  let refused = 0;
  const load = async () => {
    while (child.exitCode === null && refused < 100) {
      try {
        const response = await get(HISTORY);
        await response.json();
        statuses.push(response.status);
      } catch {
        refused++;
      }
    }
  };
  const loads = Array.from({ length: 8 }, load);
  await until('the load is running', () => statuses.length > 50);
  expect(await close()).toBe(0);
  await Promise.all(loads);
  expect(new Set(statuses)).toEqual(new Set([200]));
  await expect(fetch(`${adminUrl}/livez`)).rejects.toThrow();
});

it('the chain API returns 500 and is not ready while ClickHouse is unavailable', async () => {
  const clickhouse = new URL(testStores().clickhouse.url);
  proxy = await openStoreProxy(Number(clickhouse.port));
  proxy.mode = 'cut';
  clickhouse.port = String(proxy.port);
  const opened = await open({ CLICKHOUSE_URL: clickhouse.href });
  await until('only the store check fails', async () => String(await opened.notReady()) === 'store');
  expect((await opened.get(TOKEN)).status).toBe(500);
  expect((await opened.get(HISTORY)).status).toBe(500);
  expect((await fetch(`${opened.adminUrl}/livez`)).status).toBe(200);
  proxy.mode = 'open';
  await until('the chain API is ready', async () => (await opened.notReady()).length === 0);
  expect((await opened.get(TOKEN)).status).toBe(200);
});

it('the chain API serves tokens but is not ready before it has read a watermark from Redis', async () => {
  const redis = await openRedisProxy();
  redis.proxy.mode = 'cut';
  const opened = await open({ REDIS_URL: redis.REDIS_URL });
  await until('only the horizons check fails', async () => String(await opened.notReady()) === 'horizons');
  expect((await opened.get(HISTORY)).status).toBe(500);
  expect((await opened.get(TOKEN)).status).toBe(200);
  redis.proxy.mode = 'open';
  await until('the chain API is ready', async () => (await opened.notReady()).length === 0);
  expect((await opened.get(HISTORY)).status).toBe(200);
});

it.each(['cut', 'hung'] as const)(
  'the chain API stays ready and reports degraded features when the connection to Redis is in mode "%s"',
  async (mode) => {
    const redis = await openRedisProxy();
    const opened = await openReady({ REDIS_URL: redis.REDIS_URL });
    const idsBefore = await idsOf(opened);
    redis.proxy.mode = mode;
    const latest = activityRow({ after: mode === 'cut' ? 1000 : 2000 });
    await stores.put(latest);
    expect(await idsOf(opened)).toEqual(idsBefore);
    expect(await opened.notReady()).toEqual([]);
    expect(await degradedOf(opened)).toEqual(['newActivities', 'rateLimitKeys', 'minting']);
    redis.proxy.mode = 'open';
    await until('the new activity is served', async () => (await idsOf(opened)).includes(latest.id));
  },
);
