import { until } from '@playline/testkit/until';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { LIVE_LIMITS } from './limits.ts';
import { createLiveWorld } from './test/live-world.ts';

it('a client receives only events from the environment to which it subscribed', async () => {
  const id = fc.constantFrom('demo', 'demo-2', 'demo-', 'dem', 'demo-production', 'DEMO', 'd', 'demo%', '');
  await fc.assert(
    fc.asyncProperty(
      fc.array(id, { minLength: 1, maxLength: 6 }),
      fc.array(id, { maxLength: 12 }),
      async (ids, sent) => {
        const { send, subscribe, reject } = createLiveWorld();
        const clients = await Promise.all(ids.map((environmentId) => subscribe({ environmentId })));
        for (const [index, environmentId] of sent.entries()) {
          await send({ environmentId, eventName: `in ${environmentId}`, traceId: String(index) });
          await reject({ environmentId, field: `in ${environmentId}` });
        }
        const expectedCount = (index: number) => sent.filter((each) => each === ids[index]).length;
        await until('all events arrive', () =>
          clients.every(({ ofKind }, index) =>
            [ofKind('message'), ofKind('rejection')].every(({ length }) => length >= expectedCount(index)),
          ),
        );
        for (const [index, { ofKind }] of clients.entries()) {
          const expected = Array(expectedCount(index)).fill(`in ${ids[index]}`);
          expect(ofKind('message').map(({ name }) => name)).toEqual(expected);
          expect(ofKind('rejection').map(({ field }) => field)).toEqual(expected);
        }
      },
    ),
    { numRuns: 15 },
  );
});

it('a client without access to raw ids receives masked ids, and no properties, traits or page URLs', async () => {
  const { send, subscribe } = createLiveWorld();
  const [masked, raw] = [await subscribe({ shouldMask: true }), await subscribe()];
  const ids = {
    anonymousId: 'visitor-1',
    userId: 'ab',
    deviceId: '👩‍🚀astronaut',
    sessionId: 's',
    fromId: '',
    toId: '',
  };
  const texts = { properties: '{"mail":"a@b.c"}', traits: '{"name":"Ada"}', pageUrl: 'https://game.test/ada' };
  await send({ ...ids, ...texts, identityType: 'email' });
  await until('both messages arrive', () => masked.ofKind('message').length + raw.ofKind('message').length === 2);
  expect(raw.ofKind('message')[0]).toMatchObject({ ids: { anonymousId: 'visitor-1', userId: 'ab' }, ...texts });
  const [event] = masked.ofKind('message');
  expect(event).toMatchObject({ properties: '', traits: '', pageUrl: '' });
  expect(event?.ids).toMatchObject({ anonymousId: 'vi…', userId: '…', sessionId: '…', identityType: 'email' });
  expect(JSON.stringify(masked.events)).not.toMatch(/visitor|astronaut|a@b\.c|Ada|game\.test/);
});

it.each([
  ['returns false', () => false, 'access revoked'],
  ['fails', () => Promise.reject(new Error('connection lost')), 'access check failed'],
  ['hangs', () => new Promise<boolean>(() => {}), 'access check failed'],
])('a stream ends if its permission check %s', async (_case, check, reason) => {
  const { subscribe, hub } = createLiveWorld();
  let isStillAllowed: () => boolean | Promise<boolean> = () => true;
  const client = await subscribe({ isStillAllowed: () => isStillAllowed() });
  isStillAllowed = check;
  await until('the stream has ended', () => client.isOver);
  expect([client.ofKind('end'), hub.subscribers]).toEqual([[{ kind: 'end', reason }], 0]);
});

it('a stream ends within two check intervals if a permission check hangs', async () => {
  const { subscribe } = createLiveWorld();
  let checks = 0;
  const isStillAllowed = () => (++checks > 1 ? new Promise<boolean>(() => {}) : true);
  const client = await subscribe({ isStillAllowed });
  await until('the stream has ended', () => client.isOver);
  expect([checks, 2 * LIVE_LIMITS.permissionMs]).toEqual([2, 1_000]);
});

it('a client with an outcome filter receives a message once its outcome matches the filter', async () => {
  const { send, subscribe, commit, reject } = createLiveWorld();
  const filter = { ...NO_FILTER, outcome: 'stored', surface: 'web' };
  const client = await subscribe({ filter });
  const position = await send({ surface: 'web' }, 0);
  await send({ surface: 'unity' }, 0);
  await reject();
  await until('all messages are counted', () => client.status()?.seen === 3);
  expect(client.ofKind('message')).toEqual([]);
  commit(0, position.offset + 2);
  await until('the message arrives', () => client.status()?.shown === 1);
  expect(client.ofKind('message')).toMatchObject([{ outcome: 'stored', surface: 'web' }]);
  expect(client.status()).toMatchObject({ seen: 3, shown: 1, lost: 0, share: 1 });
});
