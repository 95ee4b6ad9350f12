import { createKeyText } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

/** Clients that share an address. A machine cannot run all of them concurrently. */
const CLIENTS = 1_000;
const CONCURRENT_CLIENTS = 16;
const NEW_KEY_POSTS = 40;

let stores: KeyStores;
let gateway: GatewayProcess;
beforeAll(async () => {
  stores = await openKeyStores();
  gateway = await openProcess(stores.topicPrefix, { REDIS_URL: stores.redisUrl });
  await until('the gateway is ready', async () => (await fetch(`${gateway.adminUrl}/readyz`)).ok);
});
afterAll(async () => {
  await gateway.close();
  await stores.close();
});

const args = ['--environment', 'production', '--kind', 'publishable', '--json'];
const changeKey = async (...action: string[]) =>
  (JSON.parse(await stores.keys(...action, ...args)) as { key: string }).key;
const createUnknownKey = () => createKeyText('svcapik', { kind: 'publishable', environment: 'production' });
const postWith = async (key: string) => (await gateway.post(key, { messages: [message()] })).status;

/** Posts with keys from `nextKey` until `isOver`. @returns the number of responses per status */
async function postAll(nextKey: () => string, isOver: () => boolean) {
  const counts: Record<number, number> = {};
  const client = async () => {
    while (!isOver()) {
      const status = await postWith(nextKey());
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_CLIENTS }, client));
  return counts;
}

it('the new key is always accepted while 1,000 clients at the same address post with the old key or unknown keys', async () => {
  const oldKey = await changeKey('create', '--replace');
  await until('the key is accepted', async () => (await postWith(oldKey)) === 200);
  let posted = 0;
  let isOver = false;
  const clients = postAll(
    () => (++posted % 2 === 0 ? oldKey : createUnknownKey()),
    () => isOver && posted >= CLIENTS,
  );
  const successor = await changeKey('refresh', '--stops', 'now');
  const statuses: number[] = [];
  while (statuses.length < NEW_KEY_POSTS) statuses.push(await postWith(successor));
  isOver = true;
  const clientStatuses = await clients;
  expect(statuses).toEqual(statuses.map(() => 200));
  // The limit still applies: unknown keys get 401 for the first 60 attempts, then 429.
  expect(clientStatuses[401]).toBeLessThan(200);
  expect(clientStatuses[429]).toBeGreaterThan(CLIENTS / 4);
});

it('a new key is accepted as soon as the command has printed it, even if clients try many unknown keys', async () => {
  let isOver = false;
  const flood = postAll(createUnknownKey, () => isOver);
  const statuses: number[] = [];
  for (let attempt = 0; attempt < 3; attempt++) statuses.push(await postWith(await changeKey('create', '--replace')));
  isOver = true;
  await flood;
  expect(statuses).toEqual([200, 200, 200]);
});
