import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createClient, pass, useFakeTime } from './test/client.ts';
import { createService, RETRY_AFTER_S, type Reply } from './test/service.ts';

beforeEach(useFakeTime);
afterEach(() => vi.useRealTimers());

const MINUTE_MS = 60_000;
const idsOf = (messages: { messageId: string }[] = []) => messages.map(({ messageId }) => messageId);

it('a batch is sent once its oldest message has waited for the flush interval', async () => {
  const service = createService();
  const { client } = createClient(service, { flushIntervalMs: 5000 });
  const first = client.track('one');
  await pass(4999);
  const second = client.track('two');
  expect(service.requests).toEqual([]);
  await pass(1);
  expect(idsOf(service.requests[0]?.messages)).toEqual([first, second]);
});

it('a batch is sent immediately when it reaches the maximum number of messages', async () => {
  const service = createService();
  const { client } = createClient(service, { batchMessagesMax: 3 });
  for (const name of ['one', 'two', 'three']) client.track(name);
  await pass(0);
  expect(service.requests.map(({ messages }) => messages.length)).toEqual([3]);
});

it('a batch never has more than 100 messages, even if `batchMessagesMax` is higher', async () => {
  const service = createService();
  const { client } = createClient(service, { batchMessagesMax: 500 });
  for (let level = 0; level < 250; level += 1) client.track('level_done', { level });
  expect(await client.flush()).toBe(0);
  expect(service.requests.map(({ messages }) => messages.length)).toEqual([100, 100, 50]);
});

it('a batch never exceeds 60 KiB, and is sent immediately when it is full', async () => {
  const service = createService();
  const { client } = createClient(service);
  for (let level = 0; level < 10; level += 1) client.track('größe', { padding: 'ü'.repeat(10_000) });
  await pass(0);
  expect(service.requests.length).toBeGreaterThan(3);
  for (const { bytes } of service.requests) expect(bytes).toBeLessThanOrEqual(60 * 1024);
});

it('a batch is sent only after the previous batch has completed', async () => {
  const service = createService('silent');
  const { client } = createClient(service, { batchMessagesMax: 2 });
  for (let level = 0; level < 20; level += 1) client.track('level_done');
  await pass(MINUTE_MS);
  expect(service.stored.size).toBe(20);
  expect(service.inFlightMax).toBe(1);
});

it("a batch is posted to the contract's URL with the key, without credentials or keepalive", async () => {
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

const RETRYABLE: Reply[] = ['server error', 'silent', 'unreachable', 'response lost', 'captive portal', 'rate limited'];

it.each(RETRYABLE)('the client resends a batch with the same ids after this result: %s', async (reply) => {
  const service = createService(reply, reply);
  const { client, reports } = createClient(service);
  const ids = [client.track('one'), client.track('two')];
  await pass(10 * MINUTE_MS);
  expect(service.requests.map(({ messages }) => idsOf(messages))).toEqual([ids, ids, ids]);
  expect([...service.stored.values()].map((texts) => texts.size)).toEqual([1, 1]);
  expect(reports).toEqual({ rejected: [], dropped: [] });
});

it('a retry waits for Retry-After, even if the caller flushes or closes the client', async () => {
  const service = createService('rate limited', 'rate limited');
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
  ['forward', 1],
])('a retry happens exactly after Retry-After even if the clock is set %s by an hour', async (_direction, sign) => {
  const service = createService('rate limited');
  const { client } = createClient(service, { flushIntervalMs: 100 });
  client.track('one');
  expect(await client.flush()).toBe(1);
  vi.setSystemTime(Date.now() + sign * 60 * MINUTE_MS);
  await pass(RETRY_AFTER_S * 1000 - 1);
  expect(await client.flush()).toBe(1);
  await pass(2000);
  expect(service.stored.size).toBe(1);
});

it('the retry delay grows with each failure, up to a minute', async () => {
  const service = createService();
  service.defaultReply = 'server error';
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
] as const)('a refused batch is dropped and reported with the error message: %s', async (reply, texts) => {
  const service = createService(reply);
  const { client, reports } = createClient(service);
  const messageIds = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  await pass(MINUTE_MS);
  expect(service.requests.length).toBe(1);
  expect(reports).toEqual({ rejected: [], dropped: [{ messageIds, reason: 'refused', ...texts }] });
});

it('a response that rejects all messages is reported per message', async () => {
  const service = createService('all rejected');
  const { client, reports } = createClient(service);
  const ids = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  expect(idsOf(reports.rejected)).toEqual(ids);
  expect(reports.rejected[0]?.errors[0]).toMatchObject({ field: 'eventName', code: 'INVALID_VALUE' });
  expect(reports.dropped).toEqual([]);
});

it('rejected messages are reported, the remaining messages are stored, and nothing is resent', async () => {
  const service = createService('some rejected');
  const { client, reports } = createClient(service);
  const [rejected, stored] = [client.track('one'), client.track('two')];
  expect(await client.flush()).toBe(0);
  expect(idsOf(reports.rejected)).toEqual([rejected]);
  expect([...service.stored.keys()]).toEqual([stored]);
  expect(service.requests.length).toBe(1);
});

it('a listener that throws does not interrupt delivery', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
  const service = createService('malformed');
  const fault = new Error('game error');
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

it('close sends queued messages without waiting for the back-off, and rejects new messages', async () => {
  const service = createService('server error');
  const { client, reports } = createClient(service);
  client.track('one');
  expect(await client.flush()).toBe(1);
  expect(await client.close()).toBe(0);
  expect(service.stored.size).toBe(1);
  expect(client.track('two')).toBeNull();
  expect(reports.dropped).toMatchObject([{ reason: 'closed' }]);
});

it('a closed client sends nothing, even if its methods are called', async () => {
  const service = createService('server error', 'server error');
  const { client } = createClient(service, { batchMessagesMax: 1 });
  client.track('one');
  expect(await client.close()).toBe(1);
  await pass(10 * MINUTE_MS);
  client.setConsent('full');
  await pass(10 * MINUTE_MS);
  expect(service.requests.length).toBe(2);
  expect(service.stored.size).toBe(0);
});
