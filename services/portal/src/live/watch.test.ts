import { until } from '@playline/testkit/until';
import { describe, expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

describe('the tap', () => {
  it('asks the brokers nothing before somebody looks, and nothing after the last has left', async () => {
    const { send, subscribe: look, requested: asked, fences, hub } = createLiveWorld();
    await send();
    expect(asked.requests).toBe(0);
    const [one, two] = [await look(), await look()];
    one.subscriber.close();
    await send();
    await until('the other is told', () => two.of('message').length === 1);
    two.subscriber.close();
    const left = asked.requests;
    await send();
    await until('the fences are closed too', () => fences.opened === 0);
    const waitedMs = performance.now() + 200;
    await until('ten looks would have been made', () => performance.now() > waitedMs);
    expect([asked.requests, hub.subscribers, hub.held.entries]).toEqual([left, 0, 0]);
  });

  it('begins at the end of the log each time somebody looks again', async () => {
    const { send, subscribe: look } = createLiveWorld();
    (await look()).subscriber.close();
    await send({ eventName: 'meanwhile' });
    const looker = await look();
    await send({ eventName: 'now' });
    await until('it is told', () => looker.of('message').length === 1);
    expect(looker.of('message').map(({ name }) => name)).toEqual(['now']);
  });

  it('reads each record once, however many look at however many environments', async () => {
    const { send, subscribe: look, requested: asked } = createLiveWorld();
    const lookers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => look({ environmentId: `e-${index % 20}` })),
    );
    for (let index = 0; index < 100; index++) await send({ environmentId: `e-${index % 25}` });
    await until('all are told', () => lookers.every(({ of }) => of('message').length === 4));
    // The last records are of environments that nobody looks at.
    await until('all are read', () => asked.records.length >= 100);
    expect(asked.records).toHaveLength(100);
    expect(new Set(asked.records).size).toBe(100);
  });

  it('asks the writer only while something waits to be stored, and once a look', async () => {
    const { send, subscribe: look, commit, requested: asked } = createLiveWorld();
    const looker = await look();
    await until('some looks', () => asked.requests > 20);
    expect(asked.committed).toBe(0);
    const { partition, offset } = await send();
    await until('it was asked', () => asked.committed > 2);
    commit(partition, offset + 1);
    await until('it is stored', () => looker.of('fate').length + looker.of('message').length === 2);
    const before = asked.committed;
    const requests = asked.requests;
    await until('some more looks', () => asked.requests > requests + 20);
    expect(asked.committed - before).toBeLessThanOrEqual(1);
  });

  it('takes a sample when more comes than it reads, says so, and reads no more than that at once', async () => {
    const { send, subscribe: look, requested: asked } = createLiveWorld({ recordsPerPollMax: 30, pollMs: 400 });
    const looker = await look();
    // All before the next poll, however slow the machine is.
    await Promise.all(Array.from({ length: 600 }, (_, index) => send({}, index % 6)));
    await until('it says so', () => (looker.status()?.share ?? 1) < 1);
    expect(looker.status()?.share).toBeLessThan(0.5);
    const perPartition = Map.groupBy(asked.records.slice(0, 30), ({ partition }) => partition);
    expect([...perPartition.values()].map((records) => records.length)).toEqual([5, 5, 5, 5, 5, 5]);
    expect(looker.status()?.seen).toBeLessThan(600);
  });

  it('reads no more bytes at once than it may, whatever the size of a record', async () => {
    const { send, subscribe: look, requested: asked } = createLiveWorld({ bytesPerPollMax: 60_000, pollMs: 400 });
    const looker = await look();
    await Promise.all(Array.from({ length: 60 }, (_, index) => send({ properties: 'x'.repeat(20_000) }, index % 6)));
    await until('it says so', () => (looker.status()?.share ?? 1) < 1);
    expect(asked.records.length).toBeLessThan(60);
  });

  it('goes on by itself when brokers were away, says so all the while, and tells of the outage once', async () => {
    const { send, subscribe: look, brokers, faults, requested: asked } = createLiveWorld();
    const looker = await look();
    brokers.isAway = true;
    await until('it says so', () => looker.status()?.trouble.includes('log cannot be read') === true);
    const told = looker.events.length;
    const askedFor = asked.requests;
    await until('it has tried some times', () => asked.requests > askedFor + 5);
    expect(looker.events.slice(told)).toEqual([]);
    await send();
    brokers.isAway = false;
    await until('it is told', () => looker.of('message').length === 1);
    expect(faults).toHaveLength(1);
  });
});
