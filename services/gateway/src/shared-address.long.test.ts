import { createKeyText } from '@playline/access-keys';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type KeyStores, openKeyStores } from './test/key-stores.ts';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess } from './test/open-process.ts';

/** Clients behind one address, each with one request at a time, as far as one machine can run them together. */
const CLIENTS = 1_000;
const TOGETHER = 16;
const GOOD_POSTS = 40;

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

const texts = ['--environment', 'production', '--kind', 'publishable', '--json'];
const made = async (...action: string[]) => (JSON.parse(await stores.keys(...action, ...texts)) as { key: string }).key;
const guess = () => createKeyText('svcapik', { kind: 'publishable', environment: 'production' });
const statusOf = async (key: string) => (await gateway.post(key, { messages: [message()] })).status;

/** Posts under the keys of `nextKey`, `TOGETHER` at a time, until `isOver`. @returns the number of each status */
async function postAll(nextKey: () => string, isOver: () => boolean) {
  const counts: Record<number, number> = {};
  const client = async () => {
    while (!isOver()) {
      const status = await statusOf(nextKey());
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, client));
  return counts;
}

it('serves the new key 40 of 40 times while 1,000 clients of the same address post the old key and others guess', async () => {
  const old = await made('create', '--replace');
  await until('the key is taken', async () => (await statusOf(old)) === 200);
  let posted = 0;
  let isOver = false;
  const clients = postAll(
    () => (++posted % 2 === 0 ? old : guess()),
    () => isOver && posted >= CLIENTS,
  );
  const successor = await made('refresh');
  const statuses: number[] = [];
  while (statuses.length < GOOD_POSTS) statuses.push(await statusOf(successor));
  isOver = true;
  const others = await clients;
  expect(statuses).toEqual(statuses.map(() => 200));
  // The limit still applies: wrong keys get 401 60 times, and 429 after that.
  expect(others[401]).toBeLessThan(200);
  expect(others[429]).toBeGreaterThan(CLIENTS / 4);
});

it('accepts a key as soon as its command has printed it, however many wrong keys are tried', async () => {
  let isOver = false;
  const flood = postAll(guess, () => isOver);
  const statuses: number[] = [];
  for (let times = 0; times < 3; times++) statuses.push(await statusOf(await made('create', '--replace')));
  isOver = true;
  await flood;
  expect(statuses).toEqual([200, 200, 200]);
});
