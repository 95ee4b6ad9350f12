import { until } from '@playline/testkit/until';
import { expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

const ada = Buffer.alloc(16, 1);
const bob = Buffer.alloc(16, 2);

it('a message is accepted, then stored once the writer has committed past it', async () => {
  const { send, subscribe, commit } = createLiveWorld();
  const client = await subscribe();
  const { partition, offset } = await send();
  await until('it arrives', () => client.of('message').length === 1);
  expect(client.of('message')[0]).toMatchObject({
    outcome: 'accepted',
    name: 'level_started',
    position: `m-${partition}-${offset}`,
  });
  commit(partition, offset);
  await until('the writer is checked', () => (client.status()?.seen ?? 0) === 1);
  expect(client.of('outcome')).toEqual([]);
  commit(partition, offset + 1);
  await until('it is stored', () => client.of('outcome').length === 1);
  expect(client.of('outcome')[0]).toMatchObject({ position: `m-${partition}-${offset}`, outcome: 'stored' });
});

it('a rejection has code and field', async () => {
  const { reject, subscribe } = createLiveWorld();
  const client = await subscribe();
  await reject();
  await until('it arrives', () => client.of('rejection').length === 1);
  expect(client.of('rejection')[0]).toMatchObject({
    outcome: 'rejected',
    code: 'INVALID_FORMAT',
    field: 'eventName',
  });
});

it('a message becomes dead-lettered whether it was shown before or not, without content in the reason', async () => {
  const { send, reject, bury, subscribe } = createLiveWorld();
  const early = await send();
  const client = await subscribe();
  const position = await send();
  await until('it arrives', () => client.of('message').length === 1);
  await bury('messages', position);
  await until('its outcome arrives', () => client.of('outcome').length === 1);
  expect(client.of('outcome')[0]).toMatchObject({ outcome: 'dead-lettered', reason: 'cannot be stored' });
  await bury('messages', early);
  await until('the other arrives', () => client.of('message').length === 2);
  expect(client.of('message')[1]).toMatchObject({ outcome: 'dead-lettered' });
  await bury('rejections', await reject());
  await until('the rejection arrives', () => client.of('outcome').length + client.of('rejection').length >= 2);
  expect(JSON.stringify(client.events)).not.toContain('secret text');
});

it('a message of an erased person is shown as fenced, without content', async () => {
  const { send, subscribe, fences } = createLiveWorld();
  fences.keys.add(ada.toString('hex'));
  const client = await subscribe();
  await send({ userKey: ada, userId: 'ada@example.org' });
  await until('it arrives', () => client.of('message').length === 1);
  const event = client.of('message')[0];
  expect(event).toEqual({
    kind: 'message',
    outcome: 'fenced',
    position: event?.position,
    receivedAt: expect.any(Number),
    traceId: '',
    reason: '',
  });
  expect(JSON.stringify(client.events)).not.toContain('ada@');
});

it('a message fenced later leaves the buffer within a second, and every client gets the outcome', async () => {
  const { send, subscribe, fences, commit } = createLiveWorld();
  const [one, two] = [await subscribe(), await subscribe({ masks: true })];
  const { partition, offset } = await send({ identityKey: ada });
  await until('both arrive', () => one.of('message').length + two.of('message').length === 2);
  fences.keys.add(ada.toString('hex'));
  const sinceMs = performance.now();
  await until('both get the outcome', () => one.of('outcome').length + two.of('outcome').length === 2);
  expect(performance.now() - sinceMs).toBeLessThan(1_000);
  commit(partition, offset + 1);
  await until('the next status', () => one.of('status').length > 2);
  expect(one.of('outcome').map(({ outcome }) => outcome)).toEqual(['fenced']);
});

it('a message loses only its anonymous id when that belongs to an erased person who shared the device', async () => {
  const { send, subscribe, fences } = createLiveWorld();
  fences.keys.add(bob.toString('hex'));
  const client = await subscribe();
  await send({ identityKey: ada, userKey: ada, userId: 'ada', anonymousKey: bob, anonymousId: 'device-of-bob' });
  await until('it arrives', () => client.of('message').length === 1);
  expect(client.of('message')[0]).toMatchObject({ outcome: 'accepted', ids: { userId: 'ada' } });
  expect(JSON.stringify(client.events)).not.toContain('device-of-bob');
});

it('no message is shown while the list of erased people cannot be read, and the status reports it', async () => {
  const { send, subscribe, fences, hub } = createLiveWorld();
  const client = await subscribe();
  fences.isLoaded = false;
  await until('the status reports it', () => client.status()?.trouble.includes('list of erased people') === true);
  await send({ userId: 'ada' });
  await until('more polls', () => client.of('status').length > 0 && hub.held.entries === 0);
  expect(client.of('message')).toEqual([]);
  fences.isLoaded = true;
  await until('the message arrives', () => client.of('message').length === 1);
  await until('the status clears', () => client.status()?.trouble === '');
});
