import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createClient, holdTime, pass } from './test/client.ts';
import { createService, RETRY_AFTER_S, type Reply } from './test/service.ts';

beforeEach(holdTime);
afterEach(() => vi.useRealTimers());

/** Longer than any back-off, shorter than two intervals of `flushIntervalMs`. */
const MINUTE_MS = 60_000;
const idsOf = (messages: { messageId: string }[] = []) => messages.map(({ messageId }) => messageId);

it('a batch leaves when its oldest message has waited for the interval, and not before', async () => {
  const service = createService();
  const { client } = createClient(service, { flushIntervalMs: 5000 });
  const first = client.track('one');
  await pass(4999);
  const second = client.track('two');
  expect(service.requests).toEqual([]);
  await pass(1);
  expect(idsOf(service.requests[0]?.messages)).toEqual([first, second]);
});

it('a batch leaves immediately when it has as many messages as it may', async () => {
  const service = createService();
  const { client } = createClient(service, { batchMessagesMax: 3 });
  for (const name of ['one', 'two', 'three']) client.track(name);
  await pass(0);
  expect(service.requests.map(({ messages }) => messages.length)).toEqual([3]);
});

it('a batch never has more than 100 messages, whatever the option is', async () => {
  const service = createService();
  const { client } = createClient(service, { batchMessagesMax: 500 });
  for (let level = 0; level < 250; level += 1) client.track('level_done', { level });
  expect(await client.flush()).toBe(0);
  expect(service.requests.map(({ messages }) => messages.length)).toEqual([100, 100, 50]);
});

it('a batch never has more than 60 KiB, and leaves immediately when it has as much', async () => {
  const service = createService();
  const { client } = createClient(service);
  for (let level = 0; level < 10; level += 1) client.track('größe', { filling: 'ü'.repeat(10_000) });
  await pass(0);
  expect(service.requests.length).toBeGreaterThan(3);
  for (const { bytes } of service.requests) expect(bytes).toBeLessThanOrEqual(60 * 1024);
});

it('a batch waits for the one before it', async () => {
  const service = createService('hangs');
  const { client } = createClient(service, { batchMessagesMax: 2 });
  for (let level = 0; level < 20; level += 1) client.track('level_done');
  await pass(MINUTE_MS);
  expect(service.stored.size).toBe(20);
  expect(service.inFlightMax).toBe(1);
});

it('a batch is posted to the contract address with the key, no credentials and no keepalive', async () => {
  const service = createService();
  const { client } = createClient(service, { baseUrl: 'https://events.example/', headerPrefix: 'x-game' });
  client.track('one');
  await client.flush();
  expect(service.requests[0]).toMatchObject({
    url: 'https://events.example/v1/audience/messages',
    headers: { 'content-type': 'application/json', 'x-game-publishable-key': 'pk_svcapik-1' },
    credentials: 'omit',
    keepalive: false,
  });
});

const LATER: Reply[] = ['fault', 'hangs', 'unreachable', 'answer lost', 'portal', 'too many'];

it.each(LATER)('the same ids are sent again when the service is or does: %s', async (reply) => {
  const service = createService(reply, reply);
  const { client, reports } = createClient(service);
  const ids = [client.track('one'), client.track('two')];
  await pass(10 * MINUTE_MS);
  expect(service.requests.map(({ messages }) => idsOf(messages))).toEqual([ids, ids, ids]);
  expect([...service.stored.values()].map((texts) => texts.size)).toEqual([1, 1]);
  expect(reports).toEqual({ rejected: [], dropped: [] });
});

it('the same ids wait for Retry-After, even if the caller flushes or closes', async () => {
  const service = createService('too many', 'too many');
  const [one, closed] = [createClient(service, { flushIntervalMs: 100 }), createClient(service)];
  for (const { client } of [one, closed]) {
    client.track('one');
    expect(await client.flush()).toBe(1);
  }
  expect(await closed.client.close()).toBe(1);
  await pass(RETRY_AFTER_S * 1000 - 1);
  expect(await one.client.flush()).toBe(1);
  expect(service.requests.length).toBe(2);
  await pass(2000);
  expect(service.stored.size).toBe(1);
});

it.each([
  ['back', -1],
  ['forth', 1],
])('the same ids end after Retry-After and not before, although the clock is set %s by an hour', async (_way, sign) => {
  const service = createService('too many');
  const { client } = createClient(service, { flushIntervalMs: 100 });
  client.track('one');
  expect(await client.flush()).toBe(1);
  vi.setSystemTime(Date.now() + sign * 60 * MINUTE_MS);
  await pass(RETRY_AFTER_S * 1000 - 1);
  expect(await client.flush()).toBe(1);
  await pass(2000);
  expect(service.stored.size).toBe(1);
});

it('the same ids wait longer after each failure, up to a minute', async () => {
  const service = createService();
  service.defaultReply = 'fault';
  const { client } = createClient(service, { flushIntervalMs: 1 });
  client.track('one');
  await pass(20 * MINUTE_MS);
  const times = service.requests.map(({ atMs }) => atMs);
  const waits = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  expect(waits[0]).toBeLessThanOrEqual(1000);
  expect(waits.slice(0, 6).every((wait, at) => wait >= 500 * 2 ** at)).toBe(true);
  expect(Math.max(...waits)).toBeLessThanOrEqual(MINUTE_MS);
  expect(Math.min(...waits.slice(6))).toBeGreaterThanOrEqual(MINUTE_MS / 2);
});

it.each([
  ['malformed', { status: 400, code: 'VALIDATION_ERROR', message: 'The batch is empty.' }],
  ['unauthorised', { status: 401, code: 'UNAUTHORISED_REQUEST', message: 'No such key.' }],
] as const)('a refusal is reported with its text and ends the batch: %s', async (reply, texts) => {
  const service = createService(reply);
  const { client, reports } = createClient(service);
  const messageIds = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  await pass(MINUTE_MS);
  expect(service.requests.length).toBe(1);
  expect(reports).toEqual({ rejected: [], dropped: [{ messageIds, reason: 'refused', ...texts }] });
});

it('a refusal of every message is reported message by message', async () => {
  const service = createService('all rejected');
  const { client, reports } = createClient(service);
  const ids = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  expect(idsOf(reports.rejected)).toEqual(ids);
  expect(reports.rejected[0]?.errors[0]).toMatchObject({ field: 'eventName', code: 'INVALID_VALUE' });
  expect(reports.dropped).toEqual([]);
});

it('a refusal of some is reported, the others are stored, none is sent again', async () => {
  const service = createService('some rejected');
  const { client, reports } = createClient(service);
  const [bad, good] = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  expect(idsOf(reports.rejected)).toEqual([bad]);
  expect([...service.stored.keys()]).toEqual([good]);
  expect(service.requests.length).toBe(1);
});

it('a refusal does not stop the delivery when the listener throws', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
  const service = createService('malformed');
  const fault = new Error('of the game');
  const { client } = createClient(service, {
    batchMessagesMax: 1,
    onDropped: () => {
      throw fault;
    },
  });
  client.track('one');
  client.track('two');
  expect(await client.flush()).toBe(0);
  expect(service.stored.size).toBe(1);
  expect(logged).toHaveBeenCalledWith(fault);
  logged.mockRestore();
});

it('close sends what is queued, passing over the back-off, and takes nothing more', async () => {
  const service = createService('fault');
  const { client, reports } = createClient(service);
  client.track('one');
  expect(await client.flush()).toBe(1);
  expect(await client.close()).toBe(0);
  expect(service.stored.size).toBe(1);
  expect(client.track('two')).toBeNull();
  expect(reports.dropped).toMatchObject([{ reason: 'closed' }]);
});

it('close is not undone by what else is called', async () => {
  const service = createService('fault', 'fault');
  const { client } = createClient(service, { batchMessagesMax: 1 });
  client.track('one');
  expect(await client.close()).toBe(1);
  await pass(10 * MINUTE_MS);
  client.setConsent('full');
  await pass(10 * MINUTE_MS);
  expect(service.requests.length).toBe(2);
  expect(service.stored.size).toBe(0);
});
