import { PublicError } from '@playline/errors';
import { until } from '@playline/testkit/until';
import { describe, expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { createLiveWorld } from './test/live-world.ts';

describe('what is held', () => {
  it('is bounded in entries and in bytes, and says where it cut a text', async () => {
    const { send, subscribe: look, hub } = createLiveWorld({ bufferEntriesMax: 20, bufferBytesMax: 100_000 });
    const looker = await look();
    for (let index = 0; index < 50; index++) await send({ properties: JSON.stringify({ text: 'x'.repeat(50_000) }) });
    await until('all are told', () => looker.of('message').length === 50);
    expect(hub.held.entries).toBeGreaterThan(5);
    expect(hub.held.entries).toBeLessThanOrEqual(20);
    expect(hub.held.bytes).toBeLessThanOrEqual(100_000);
    expect(looker.of('message')[0]).toMatchObject({ isCut: true });
    expect(looker.of('message')[0]?.properties).toHaveLength(2_048);
  });

  it('is what somebody looks at, and nothing of another environment', async () => {
    const { send, subscribe: look, hub, requested: asked } = createLiveWorld();
    await look();
    for (const environmentId of ['demo-2', 'dem', 'other']) await send({ environmentId });
    await until('they were read', () => asked.records.length === 3);
    expect(hub.held.entries).toBe(0);
  });

  it('drops the oldest of a looker that does not read, and tells it how many; others miss nothing', async () => {
    const { send, subscribe: look, hub } = createLiveWorld({ queueEventsMax: 10 });
    const slow = hub.subscribe({ environmentId: 'demo', filter: NO_FILTER, masks: false, isStillAllowed: () => true });
    const fast = await look();
    for (let index = 0; index < 50; index++) {
      await send({ eventName: `e-${index}` });
      await until('the fast one is told', () => fast.of('message').length === index + 1);
    }
    expect(await slow.next(0)).toMatchObject({ kind: 'status', seen: 50, shown: 0, lost: 40 });
    const names = [];
    for (let index = 0; index < 10; index++) names.push(await slow.next(0));
    expect(names).toMatchObject(Array.from({ length: 10 }, (_, index) => ({ name: `e-${index + 40}` })));
    await until('the count is whole', () => fast.status()?.shown === 50);
    expect(fast.status()).toMatchObject({ seen: 50, lost: 0 });
    slow.close();
  });

  it('serves so many lookers, and asks the next to come again', async () => {
    const { subscribe: look, hub } = createLiveWorld({ subscribersMax: 5 });
    const lookers = await Promise.all(Array.from({ length: 5 }, () => look()));
    const request = { environmentId: 'demo', filter: NO_FILTER, masks: false, isStillAllowed: () => true };
    expect(() => hub.subscribe(request)).toThrow(PublicError);
    lookers[0]!.subscriber.close();
    hub.subscribe(request);
    expect(hub.subscribers).toBe(5);
  });
});

describe('closing the hub', () => {
  it('ends every look, tells them, and lets nobody look again', async () => {
    const { subscribe: look, hub, requested: asked } = createLiveWorld();
    const lookers = [await look(), await look({ environmentId: 'other' })];
    await hub.close();
    await until('all have ended', () => lookers.every(({ isOver }) => isOver));
    expect(lookers.map(({ of }) => of('end'))).toEqual(Array(2).fill([{ kind: 'end', reason: 'closed' }]));
    const { requests } = asked;
    expect(() =>
      hub.subscribe({ environmentId: 'demo', filter: NO_FILTER, masks: false, isStillAllowed: () => true }),
    ).toThrow();
    expect(asked.requests).toBe(requests);
  });
});
