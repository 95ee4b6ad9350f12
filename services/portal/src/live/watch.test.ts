import { until } from '@playline/testkit/until';
import { expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

it('the brokers get no request before the first client and none after the last has left', async () => {
  const { send, subscribe, requested, fences, hub } = createLiveWorld();
  await send();
  expect(requested.requests).toBe(0);
  const [one, two] = [await subscribe(), await subscribe()];
  one.subscriber.close();
  await send();
  await until('it arrives at the other', () => two.of('message').length === 1);
  two.subscriber.close();
  const requests = requested.requests;
  await send();
  await until('the fences are closed', () => fences.opened === 0);
  const waitedMs = performance.now() + 200;
  await until('ten polls would have been made', () => performance.now() > waitedMs);
  expect([requested.requests, hub.subscribers, hub.held.entries]).toEqual([requests, 0, 0]);
});

it('the watch begins at the end of the log when a first client subscribes again', async () => {
  const { send, subscribe } = createLiveWorld();
  (await subscribe()).subscriber.close();
  await send({ eventName: 'before' });
  const client = await subscribe();
  await send({ eventName: 'after' });
  await until('it arrives', () => client.of('message').length === 1);
  expect(client.of('message').map(({ name }) => name)).toEqual(['after']);
});

it('each record is read once for any number of clients and environments', async () => {
  const { send, subscribe, requested } = createLiveWorld();
  const clients = await Promise.all(
    Array.from({ length: 60 }, (_, index) => subscribe({ environmentId: `e-${index % 20}` })),
  );
  for (let index = 0; index < 100; index++) await send({ environmentId: `e-${index % 25}` });
  await until('all arrive', () => clients.every(({ of }) => of('message').length === 4));
  // The last records are of environments without clients.
  await until('all are read', () => requested.records.length >= 100);
  expect(requested.records).toHaveLength(100);
  expect(new Set(requested.records).size).toBe(100);
});

it('the offsets of the writer are read only while a message waits to be stored', async () => {
  const { send, subscribe, commit, requested } = createLiveWorld();
  const client = await subscribe();
  await until('several polls', () => requested.requests > 20);
  expect(requested.committed).toBe(0);
  const { partition, offset } = await send();
  await until('the offsets are read', () => requested.committed > 2);
  commit(partition, offset + 1);
  await until('it is stored', () => client.of('outcome').length + client.of('message').length === 2);
  const before = requested.committed;
  const requests = requested.requests;
  await until('more polls', () => requested.requests > requests + 20);
  expect(requested.committed - before).toBeLessThanOrEqual(1);
});

it('beyond its rate the watch reads an even sample of the partitions and reports its share', async () => {
  const { send, subscribe, requested } = createLiveWorld({ recordsPerPollMax: 30, pollMs: 400 });
  const client = await subscribe();
  // All before the next poll, however slow the machine is.
  await Promise.all(Array.from({ length: 600 }, (_, index) => send({}, index % 6)));
  await until('the status reports it', () => (client.status()?.share ?? 1) < 1);
  expect(client.status()?.share).toBeLessThan(0.5);
  const perPartition = Map.groupBy(requested.records.slice(0, 30), ({ partition }) => partition);
  expect([...perPartition.values()].map((records) => records.length)).toEqual([5, 5, 5, 5, 5, 5]);
  expect(client.status()?.seen).toBeLessThan(600);
});

it('a poll reads no more bytes than its limit', async () => {
  const { send, subscribe, requested } = createLiveWorld({ bytesPerPollMax: 60_000, pollMs: 400 });
  const client = await subscribe();
  await Promise.all(Array.from({ length: 60 }, (_, index) => send({ properties: 'x'.repeat(20_000) }, index % 6)));
  await until('the status reports it', () => (client.status()?.share ?? 1) < 1);
  expect(requested.records.length).toBeLessThan(60);
});

it('the watch resumes after an outage of the brokers, reports it in the status and logs it once', async () => {
  const { send, subscribe, brokers, faults, requested } = createLiveWorld();
  const client = await subscribe();
  brokers.isAway = true;
  await until('the status reports it', () => client.status()?.trouble.includes('log cannot be read') === true);
  const events = client.events.length;
  const requests = requested.requests;
  await until('it retries', () => requested.requests > requests + 5);
  expect(client.events.slice(events)).toEqual([]);
  await send();
  brokers.isAway = false;
  await until('it arrives', () => client.of('message').length === 1);
  expect(faults).toHaveLength(1);
});
