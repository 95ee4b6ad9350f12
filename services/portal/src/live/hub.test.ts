import { PublicError } from '@playline/errors';
import { until } from '@playline/testkit/until';
import { expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { createLiveWorld } from './test/live-world.ts';

const SUBSCRIPTION = { environmentId: 'demo', filter: NO_FILTER, shouldMask: false, isStillAllowed: () => true };

it('the hub limits its buffer by entries and bytes, and flags truncated messages', async () => {
  const { send, subscribe, hub } = createLiveWorld({ bufferEntriesMax: 20, bufferBytesMax: 100_000 });
  const client = await subscribe();
  for (let index = 0; index < 50; index++) await send({ properties: JSON.stringify({ text: 'x'.repeat(50_000) }) });
  await until('all messages arrive', () => client.ofKind('message').length === 50);
  expect(hub.buffered.entries).toBeGreaterThan(5);
  expect(hub.buffered.entries).toBeLessThanOrEqual(20);
  expect(hub.buffered.bytes).toBeLessThanOrEqual(100_000);
  expect(client.ofKind('message')[0]).toMatchObject({ isCut: true });
  expect(client.ofKind('message')[0]?.properties).toHaveLength(2_048);
});

it('the hub buffers only messages for subscribed environments', async () => {
  const { send, subscribe, hub, observed } = createLiveWorld();
  await subscribe();
  for (const environmentId of ['demo-2', 'dem', 'other']) await send({ environmentId });
  await until('all messages are read', () => observed.records.length === 3);
  expect(hub.buffered.entries).toBe(0);
});

it('a slow client loses its oldest events and receives their number, and other clients are not affected', async () => {
  const { send, subscribe, hub } = createLiveWorld({ queueEventsMax: 10 });
  const slow = hub.subscribe(SUBSCRIPTION);
  const fast = await subscribe();
  for (let index = 0; index < 50; index++) {
    await send({ eventName: `e-${index}` });
    await until('the message arrives at the fast client', () => fast.ofKind('message').length === index + 1);
  }
  expect(await slow.next(0)).toMatchObject({ kind: 'status', seen: 50, shown: 0, lost: 40 });
  const names = [];
  for (let index = 0; index < 10; index++) names.push(await slow.next(0));
  expect(names).toMatchObject(Array.from({ length: 10 }, (_, index) => ({ name: `e-${index + 40}` })));
  await until('the count is complete', () => fast.status()?.shown === 50);
  expect(fast.status()).toMatchObject({ seen: 50, lost: 0 });
  slow.close();
});

it('the hub rejects new clients at its limit until a client disconnects', async () => {
  const { subscribe, hub } = createLiveWorld({ subscribersMax: 5 });
  const clients = await Promise.all(Array.from({ length: 5 }, () => subscribe()));
  expect(() => hub.subscribe(SUBSCRIPTION)).toThrow(PublicError);
  clients[0]!.subscriber.close();
  hub.subscribe(SUBSCRIPTION);
  expect(hub.subscribers).toBe(5);
});

it('closing the hub sends every client an end event and rejects new clients', async () => {
  const { subscribe, hub, observed } = createLiveWorld();
  const clients = [await subscribe(), await subscribe({ environmentId: 'other' })];
  await hub.close();
  await until('all clients have ended', () => clients.every(({ isOver }) => isOver));
  expect(clients.map(({ ofKind }) => ofKind('end'))).toEqual(Array(2).fill([{ kind: 'end', reason: 'closed' }]));
  const { requests } = observed;
  expect(() => hub.subscribe(SUBSCRIPTION)).toThrow();
  expect(observed.requests).toBe(requests);
});
