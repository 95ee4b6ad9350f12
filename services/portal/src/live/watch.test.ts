import { until } from '@playline/testkit/until';
import { expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

it('the hub sends requests to Kafka only while there are clients', async () => {
  const { send, subscribe, observed, fences, hub } = createLiveWorld();
  await send();
  expect(observed.requests).toBe(0);
  const [first, second] = [await subscribe(), await subscribe()];
  first.subscriber.close();
  await send();
  await until('the message arrives at the second client', () => second.ofKind('message').length === 1);
  second.subscriber.close();
  const requests = observed.requests;
  await send();
  await until('the fences are closed', () => fences.opened === 0);
  const waitedMs = performance.now() + 200;
  await until('enough time for ten polls has passed', () => performance.now() > waitedMs);
  expect([observed.requests, hub.subscribers, hub.buffered.entries]).toEqual([requests, 0, 0]);
});

it('the first client after a period without clients starts at the end of the log', async () => {
  const { send, subscribe } = createLiveWorld();
  (await subscribe()).subscriber.close();
  await send({ eventName: 'before' });
  const client = await subscribe();
  await send({ eventName: 'after' });
  await until('the message arrives', () => client.ofKind('message').length === 1);
  expect(client.ofKind('message').map(({ name }) => name)).toEqual(['after']);
});

it('the hub reads each record once, regardless of the number of clients and environments', async () => {
  const { send, subscribe, observed } = createLiveWorld();
  const clients = await Promise.all(
    Array.from({ length: 60 }, (_, index) => subscribe({ environmentId: `e-${index % 20}` })),
  );
  for (let index = 0; index < 100; index++) await send({ environmentId: `e-${index % 25}` });
  await until('all messages arrive', () => clients.every(({ ofKind }) => ofKind('message').length === 4));
  // The last records belong to environments without clients.
  await until('all records are read', () => observed.records.length >= 100);
  expect(observed.records).toHaveLength(100);
  expect(new Set(observed.records).size).toBe(100);
});

it('the hub reads committed offsets only while a message is waiting to be stored', async () => {
  const { send, subscribe, commit, observed } = createLiveWorld();
  const client = await subscribe();
  await until('several polls have completed', () => observed.requests > 20);
  expect(observed.committed).toBe(0);
  const { partition, offset } = await send();
  await until('the committed offsets are read', () => observed.committed > 2);
  commit(partition, offset + 1);
  await until('the message is stored', () => client.ofKind('outcome').length + client.ofKind('message').length === 2);
  const before = observed.committed;
  const requests = observed.requests;
  await until('more polls have completed', () => observed.requests > requests + 20);
  expect(observed.committed - before).toBeLessThanOrEqual(1);
});

it('above its rate limit, the hub samples partitions evenly and reports the fraction of records read', async () => {
  const { send, subscribe, observed } = createLiveWorld({ recordsPerPollMax: 30, pollMs: 400 });
  const client = await subscribe();
  // Concurrently, so that all messages are sent before the next poll.
  await Promise.all(Array.from({ length: 600 }, (_, index) => send({}, index % 6)));
  await until('the status reports sampling', () => (client.status()?.share ?? 1) < 1);
  expect(client.status()?.share).toBeLessThan(0.5);
  const perPartition = Map.groupBy(observed.records.slice(0, 30), ({ partition }) => partition);
  expect([...perPartition.values()].map((records) => records.length)).toEqual([5, 5, 5, 5, 5, 5]);
  expect(client.status()?.seen).toBeLessThan(600);
});

it('a poll reads no more than its byte limit', async () => {
  const { send, subscribe, observed } = createLiveWorld({ bytesPerPollMax: 60_000, pollMs: 400 });
  const client = await subscribe();
  await Promise.all(Array.from({ length: 60 }, (_, index) => send({ properties: 'x'.repeat(20_000) }, index % 6)));
  await until('the status reports sampling', () => (client.status()?.share ?? 1) < 1);
  expect(observed.records.length).toBeLessThan(60);
});

it('the hub shows a warning during a Kafka outage, logs the outage once and then resumes', async () => {
  const { send, subscribe, brokers, faults, observed } = createLiveWorld();
  const client = await subscribe();
  brokers.isDown = true;
  await until('the status has a warning', () => client.status()?.trouble.includes('cannot be read') === true);
  const events = client.events.length;
  const requests = observed.requests;
  await until('the hub retries', () => observed.requests > requests + 5);
  expect(client.events.slice(events)).toEqual([]);
  await send();
  brokers.isDown = false;
  await until('the message arrives', () => client.ofKind('message').length === 1);
  expect(faults).toHaveLength(1);
});
