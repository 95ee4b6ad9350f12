import { until } from '@playline/testkit/until';
import { describe, expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

const ada = Buffer.alloc(16, 1);
const bob = Buffer.alloc(16, 2);

describe('the fate of a message', () => {
  it('is accepted, then stored once the writer has committed past it, and not before', async () => {
    const { send, subscribe: look, commit } = createLiveWorld();
    const looker = await look();
    const { partition, offset } = await send();
    await until('it is told', () => looker.of('message').length === 1);
    expect(looker.of('message')[0]).toMatchObject({
      fate: 'accepted',
      name: 'level_started',
      place: `m-${partition}-${offset}`,
    });
    commit(partition, offset);
    await until('the writer was asked', () => (looker.status()?.seen ?? 0) === 1);
    expect(looker.of('fate')).toEqual([]);
    commit(partition, offset + 1);
    await until('it is stored', () => looker.of('fate').length === 1);
    expect(looker.of('fate')[0]).toMatchObject({ place: `m-${partition}-${offset}`, fate: 'stored' });
  });

  it('is rejected with code and field, and nothing of its content', async () => {
    const { reject, subscribe: look } = createLiveWorld();
    const looker = await look();
    await reject();
    await until('it is told', () => looker.of('rejection').length === 1);
    expect(looker.of('rejection')[0]).toMatchObject({ fate: 'rejected', code: 'INVALID_FORMAT', field: 'eventName' });
  });

  it('is dead-lettered, without what the reason says of the record, whether it was told before or not', async () => {
    const { send, reject, bury, subscribe: look } = createLiveWorld();
    const early = await send();
    const looker = await look();
    const place = await send();
    await until('it is told', () => looker.of('message').length === 1);
    await bury('messages', place);
    await until('its fate is told', () => looker.of('fate').length === 1);
    expect(looker.of('fate')[0]).toMatchObject({ fate: 'dead-lettered', reason: 'cannot be stored' });
    await bury('messages', early);
    await until('the other is told', () => looker.of('message').length === 2);
    expect(looker.of('message')[1]).toMatchObject({ fate: 'dead-lettered' });
    await bury('rejections', await reject());
    await until('a rejection too', () => looker.of('fate').length + looker.of('rejection').length >= 2);
    expect(JSON.stringify(looker.events)).not.toContain('secret words');
  });

  it('is fenced from the first moment when it is about somebody who is erased: it came, and nothing else is told', async () => {
    const { send, subscribe: look, fences } = createLiveWorld();
    fences.keys.add(ada.toString('hex'));
    const looker = await look();
    await send({ userKey: ada, userId: 'ada@example.org' });
    await until('it is told', () => looker.of('message').length === 1);
    const told = looker.of('message')[0];
    expect(told).toEqual({
      kind: 'message',
      fate: 'fenced',
      place: told?.place,
      receivedAt: expect.any(Number),
      traceId: '',
      reason: '',
    });
    expect(JSON.stringify(looker.events)).not.toContain('ada@');
  });

  it('leaves the buffer within a second of being fenced, and every looker is told', async () => {
    const { send, subscribe: look, fences, commit } = createLiveWorld();
    const [one, two] = [await look(), await look({ masks: true })];
    const { partition, offset } = await send({ identityKey: ada });
    await until('both are told', () => one.of('message').length + two.of('message').length === 2);
    fences.keys.add(ada.toString('hex'));
    const sinceMs = performance.now();
    await until('both hear of it', () => one.of('fate').length + two.of('fate').length === 2);
    expect(performance.now() - sinceMs).toBeLessThan(1_000);
    commit(partition, offset + 1);
    await until('the next status', () => one.of('status').length > 2);
    expect(one.of('fate').map(({ fate }) => fate)).toEqual(['fenced']);
  });

  it('loses the anonymous id alone where that belongs to somebody erased who merely shared the device', async () => {
    const { send, subscribe: look, fences } = createLiveWorld();
    fences.keys.add(bob.toString('hex'));
    const looker = await look();
    await send({ identityKey: ada, userKey: ada, userId: 'ada', anonymousKey: bob, anonymousId: 'device-of-bob' });
    await until('it is told', () => looker.of('message').length === 1);
    expect(looker.of('message')[0]).toMatchObject({ fate: 'accepted', ids: { userId: 'ada' } });
    expect(JSON.stringify(looker.events)).not.toContain('device-of-bob');
  });

  it('is told to nobody while it cannot be read who is erased, and it says so', async () => {
    const { send, subscribe: look, fences, hub } = createLiveWorld();
    const looker = await look();
    fences.isLoaded = false;
    await until('it says why', () => looker.status()?.trouble.includes('who is erased') === true);
    await send({ userId: 'ada' });
    await until('some more looks', () => looker.of('status').length > 0 && hub.held.entries === 0);
    expect(looker.of('message')).toEqual([]);
    fences.isLoaded = true;
    await until('it goes on where it was', () => looker.of('message').length === 1);
    await until('it says no more', () => looker.status()?.trouble === '');
  });
});
