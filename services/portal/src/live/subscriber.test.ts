import { until } from '@playline/testkit/until';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { LIVE_LIMITS } from './limits.ts';
import { createLiveWorld } from './test/live-world.ts';

it('a client gets messages of its own environment only, by exact id', async () => {
  const id = fc.constantFrom('demo', 'demo-2', 'demo-', 'dem', 'demo-production', 'DEMO', 'd', 'demo%', '');
  await fc.assert(
    fc.asyncProperty(
      fc.array(id, { minLength: 1, maxLength: 6 }),
      fc.array(id, { maxLength: 12 }),
      async (ids, sent) => {
        const { send, subscribe, reject } = createLiveWorld();
        const clients = await Promise.all(ids.map((environmentId) => subscribe({ environmentId })));
        for (const [index, environmentId] of sent.entries()) {
          await send({ environmentId, eventName: `of ${environmentId}`, traceId: String(index) });
          await reject({ environmentId, field: `of ${environmentId}` });
        }
        const due = (index: number) => sent.filter((each) => each === ids[index]).length;
        await until('all arrive', () =>
          clients.every(({ of }, index) => of('message').length >= due(index) && of('rejection').length >= due(index)),
        );
        for (const [index, { of }] of clients.entries()) {
          expect(of('message').map(({ name }) => name)).toEqual(Array(due(index)).fill(`of ${ids[index]}`));
          expect(of('rejection').map(({ field }) => field)).toEqual(Array(due(index)).fill(`of ${ids[index]}`));
        }
      },
    ),
    { numRuns: 15 },
  );
});

it('a client without access to raw ids gets masked ids and no free text', async () => {
  const { send, subscribe } = createLiveWorld();
  const [masked, raw] = [await subscribe({ masks: true }), await subscribe()];
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
  await until('both arrive', () => masked.of('message').length + raw.of('message').length === 2);
  expect(raw.of('message')[0]).toMatchObject({ ids: { anonymousId: 'visitor-1', userId: 'ab' }, ...texts });
  const [event] = masked.of('message');
  expect(event).toMatchObject({ properties: '', traits: '', pageUrl: '' });
  expect(event?.ids).toMatchObject({ anonymousId: 'vi…', userId: '…', sessionId: '…', identityType: 'email' });
  expect(JSON.stringify(masked.events)).not.toMatch(/visitor|astronaut|a@b\.c|Ada|game\.test/);
});

it.each([
  ['is denied', () => false, 'not allowed any more'],
  ['fails', () => Promise.reject(new Error('connection lost')), 'permission unknown'],
  ['never answers', () => new Promise<boolean>(() => {}), 'permission unknown'],
])('a stream ends when its permission check %s', async (_how, check, reason) => {
  const { subscribe, hub } = createLiveWorld();
  let isStillAllowed: () => boolean | Promise<boolean> = () => true;
  const client = await subscribe({ isStillAllowed: () => isStillAllowed() });
  isStillAllowed = check;
  await until('it has ended', () => client.isOver);
  expect([client.of('end'), hub.subscribers]).toEqual([[{ kind: 'end', reason }], 0]);
});

it('a stream ends when the next permission check is due and the last one has not answered', async () => {
  const { subscribe } = createLiveWorld();
  let checks = 0;
  const isStillAllowed = () => (++checks > 1 ? new Promise<boolean>(() => {}) : true);
  const client = await subscribe({ isStillAllowed });
  await until('it has ended', () => client.isOver);
  expect([checks, 2 * LIVE_LIMITS.permissionMs]).toEqual([2, 1_000]);
});

it('a filtered client gets a message when its outcome begins to match, and the numbers of all and shown messages', async () => {
  const { send, subscribe, commit, reject } = createLiveWorld();
  const filter = { ...NO_FILTER, outcome: 'stored', surface: 'web' };
  const client = await subscribe({ filter });
  const position = await send({ surface: 'web' }, 0);
  await send({ surface: 'unity' }, 0);
  await reject();
  await until('all are seen', () => client.status()?.seen === 3);
  expect(client.of('message')).toEqual([]);
  commit(0, position.offset + 2);
  await until('it arrives', () => client.status()?.shown === 1);
  expect(client.of('message')).toMatchObject([{ outcome: 'stored', surface: 'web' }]);
  expect(client.status()).toMatchObject({ seen: 3, shown: 1, lost: 0, share: 1 });
});
