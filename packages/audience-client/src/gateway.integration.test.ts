import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AudienceStore, type DroppedMessages, type MessageRejection, openAudienceClient } from './index.ts';
import { type Gateway, openGateway } from './test/open-gateway.ts';

let gateway: Gateway;
const folder = mkdtempSync(join(tmpdir(), 'audience-'));
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true });
});

/** The store from the Node example in the README. */
function createFolderStore(): AudienceStore {
  const fileOf = (key: string) => join(folder, encodeURIComponent(key));
  const keys = () => readdirSync(folder).map(decodeURIComponent);
  return {
    get: (key) => (keys().includes(key) ? readFileSync(fileOf(key), 'utf8') : null),
    set: (key, value) => writeFileSync(fileOf(key), value),
    remove: (key) => rmSync(fileOf(key), { force: true }),
    keys,
  };
}

function openClient(options: { baseUrl?: string; store?: AudienceStore; context?: () => object } = {}) {
  const rejected: MessageRejection[] = [];
  const dropped: DroppedMessages[] = [];
  const client = openAudienceClient({
    baseUrl: gateway.url,
    publishableKey: gateway.publishableKey,
    consent: 'full',
    ...options,
    onRejected: (rejection) => rejected.push(rejection),
    onDropped: (report) => dropped.push(report),
  });
  return { client, rejected, dropped };
}

it("all of a game server's messages arrive in the log, including compressed batches", async () => {
  const { client, rejected, dropped } = openClient();
  const ids = Array.from({ length: 250 }, (_, level) => client.track('level_done', { level }) ?? '');
  expect(await client.close()).toBe(0);
  const records = await gateway.awaitIds(ids);
  expect(records.map(({ properties }) => JSON.parse(properties).level)).toEqual(ids.map((_, level) => level));
  expect([rejected, dropped]).toEqual([[], []]);
});

it('a game server receives a report of rejected messages, and all other messages arrive', async () => {
  // The client does not validate context values from the game.
  let context: object = { screenDensity: 'high' };
  const { client, rejected, dropped } = openClient({ context: () => context });
  const first = client.track('level_done');
  context = {};
  const second = client.track('level_done');
  expect(await client.flush()).toBe(0);
  expect(rejected).toMatchObject([
    { messageId: first, errors: [{ field: 'context.screenDensity', code: 'INVALID_FORMAT' }] },
  ]);
  await gateway.awaitIds([String(second)]);
  context = { screenDensity: 'high' };
  const third = client.track('level_done');
  expect(await client.close()).toBe(0);
  expect(rejected[1]?.messageId).toBe(third);
  expect(dropped).toEqual([]);
});

it('a game server sends stored messages after a restart', async () => {
  const store = createFolderStore();
  // No process listens on this port.
  const { client } = openClient({ store, baseUrl: 'http://127.0.0.1:9' });
  const ids = [client.track('one'), client.track('two')].map(String);
  expect(await client.close()).toBe(2);
  const next = openClient({ store });
  expect(await next.client.close()).toBe(0);
  await gateway.awaitIds(ids);
  expect(next.client.anonymousId).toBe(client.anonymousId);
});
