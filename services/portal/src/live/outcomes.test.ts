import { until } from '@playline/testkit/until';
import { expect, it } from 'vitest';
import { createLiveWorld } from './test/live-world.ts';

const ada = Buffer.alloc(16, 1);
const bob = Buffer.alloc(16, 2);

it('a message has outcome "accepted" until the event writer commits a later offset, and then "stored"', async () => {
  const { send, subscribe, commit } = createLiveWorld();
  const client = await subscribe();
  const { partition, offset } = await send();
  await until('the message arrives', () => client.ofKind('message').length === 1);
  expect(client.ofKind('message')[0]).toMatchObject({
    outcome: 'accepted',
    name: 'level_started',
    position: `m-${partition}-${offset}`,
  });
  commit(partition, offset);
  await until('the committed offsets are read', () => (client.status()?.seen ?? 0) === 1);
  expect(client.ofKind('outcome')).toEqual([]);
  commit(partition, offset + 1);
  await until('the message is stored', () => client.ofKind('outcome').length === 1);
  expect(client.ofKind('outcome')[0]).toMatchObject({
    position: `m-${partition}-${offset}`,
    outcome: 'stored',
    storedAt: expect.any(Number),
  });
});

it('a rejection event contains the code, the field, the message in its batch and the broken rule', async () => {
  const { reject, subscribe } = createLiveWorld();
  const client = await subscribe();
  await reject();
  await until('the message arrives', () => client.ofKind('rejection').length === 1);
  expect(client.ofKind('rejection')[0]).toMatchObject({
    outcome: 'rejected',
    code: 'INVALID_FORMAT',
    field: 'eventName',
    messageIndex: 0,
    sentence: 'eventName is not a string',
  });
});

it('a dead-lettered message is shown with its reason, but without any message content', async () => {
  const { send, reject, deadLetter, subscribe } = createLiveWorld();
  const early = await send();
  const client = await subscribe();
  const position = await send();
  await until('the message arrives', () => client.ofKind('message').length === 1);
  await deadLetter('messages', position);
  await until('the outcome arrives', () => client.ofKind('outcome').length === 1);
  expect(client.ofKind('outcome')[0]).toMatchObject({ outcome: 'dead-lettered', reason: 'cannot be stored' });
  await deadLetter('messages', early);
  await until('the earlier message arrives', () => client.ofKind('message').length === 2);
  expect(client.ofKind('message')[1]).toMatchObject({ outcome: 'dead-lettered' });
  await deadLetter('rejections', await reject());
  await until('the rejection arrives', () => client.ofKind('outcome').length + client.ofKind('rejection').length >= 2);
  expect(JSON.stringify(client.events)).not.toContain('secret text');
});

it('a message from an erased person is shown as fenced, without content', async () => {
  const { send, subscribe, fences } = createLiveWorld();
  fences.keys.add(ada.toString('hex'));
  const client = await subscribe();
  await send({ userKey: ada, userId: 'ada@example.org' });
  await until('the message arrives', () => client.ofKind('message').length === 1);
  const event = client.ofKind('message')[0];
  expect(event).toEqual({
    kind: 'message',
    outcome: 'fenced',
    position: event?.position,
    receivedAt: expect.any(Number),
    storedAt: null,
    traceId: '',
    reason: '',
  });
  expect(JSON.stringify(client.events)).not.toContain('ada@');
});

it('all clients are notified within a second when a displayed message is fenced', async () => {
  const { send, subscribe, fences, commit } = createLiveWorld();
  const [first, second] = [await subscribe(), await subscribe({ shouldMask: true })];
  const { partition, offset } = await send({ identityKey: ada });
  const count = (kind: 'message' | 'outcome') => first.ofKind(kind).length + second.ofKind(kind).length;
  await until('both clients get the message', () => count('message') === 2);
  fences.keys.add(ada.toString('hex'));
  const sinceMs = performance.now();
  await until('both clients get the outcome', () => count('outcome') === 2);
  expect(performance.now() - sinceMs).toBeLessThan(1_000);
  commit(partition, offset + 1);
  await until('the next status arrives', () => first.ofKind('status').length > 2);
  expect(first.ofKind('outcome').map(({ outcome }) => outcome)).toEqual(['fenced']);
});

it('a message from a device that an erased person shared loses only its anonymous id', async () => {
  const { send, subscribe, fences } = createLiveWorld();
  fences.keys.add(bob.toString('hex'));
  const client = await subscribe();
  await send({ identityKey: ada, userKey: ada, userId: 'ada', anonymousKey: bob, anonymousId: 'device-of-bob' });
  await until('the message arrives', () => client.ofKind('message').length === 1);
  expect(client.ofKind('message')[0]).toMatchObject({ outcome: 'accepted', ids: { userId: 'ada' } });
  expect(JSON.stringify(client.events)).not.toContain('device-of-bob');
});

it('messages are hidden and the status has a warning while the list of erased people cannot be read', async () => {
  const { send, subscribe, fences, hub } = createLiveWorld();
  const client = await subscribe();
  fences.isLoaded = false;
  await until('the status has a warning', () => client.status()?.trouble.includes('list of erased people') === true);
  await send({ userId: 'ada' });
  await until('the buffer is empty', () => client.ofKind('status').length > 0 && hub.buffered.entries === 0);
  expect(client.ofKind('message')).toEqual([]);
  fences.isLoaded = true;
  await until('the message arrives', () => client.ofKind('message').length === 1);
  await until('the status has no warning', () => client.status()?.trouble === '');
});
