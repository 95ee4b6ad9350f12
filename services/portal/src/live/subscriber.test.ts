import { until } from '@playline/testkit/until';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_FILTER } from './filter.ts';
import { LIVE_LIMITS } from './limits.ts';
import { createLiveWorld } from './test/live-world.ts';

describe('a looker', () => {
  it('sees its own environment alone, by its whole id, whoever else looks', async () => {
    const id = fc.constantFrom('demo', 'demo-2', 'demo-', 'dem', 'demo-production', 'DEMO', 'd', 'demo%', '');
    await fc.assert(
      fc.asyncProperty(
        fc.array(id, { minLength: 1, maxLength: 6 }),
        fc.array(id, { maxLength: 12 }),
        async (eyes, sent) => {
          const { send, subscribe: look, reject } = createLiveWorld();
          const lookers = await Promise.all(eyes.map((environmentId) => look({ environmentId })));
          for (const [index, environmentId] of sent.entries()) {
            await send({ environmentId, eventName: `of ${environmentId}`, traceId: String(index) });
            await reject({ environmentId, field: `of ${environmentId}` });
          }
          const due = (index: number) => sent.filter((each) => each === eyes[index]).length;
          await until('all is told', () =>
            lookers.every(
              ({ of }, index) => of('message').length >= due(index) && of('rejection').length >= due(index),
            ),
          );
          for (const [index, { of }] of lookers.entries()) {
            expect(of('message').map(({ name }) => name)).toEqual(Array(due(index)).fill(`of ${eyes[index]}`));
            expect(of('rejection').map(({ field }) => field)).toEqual(Array(due(index)).fill(`of ${eyes[index]}`));
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  it('without raw ids sees masks, and no text in which somebody may be named', async () => {
    const { send, subscribe: look } = createLiveWorld();
    const [masked, raw] = [await look({ masks: true }), await look()];
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
    await until('both are told', () => masked.of('message').length + raw.of('message').length === 2);
    expect(raw.of('message')[0]).toMatchObject({ ids: { anonymousId: 'visitor-1', userId: 'ab' }, ...texts });
    const [told] = masked.of('message');
    expect(told).toMatchObject({ properties: '', traits: '', pageUrl: '' });
    expect(told?.ids).toMatchObject({ anonymousId: 'vi…', userId: '…', sessionId: '…', identityType: 'email' });
    expect(JSON.stringify(masked.events)).not.toMatch(/visitor|astronaut|a@b\.c|Ada|game\.test/);
  });

  it.each([
    ['says no', () => false, 'not allowed any more'],
    ['fails', () => Promise.reject(new Error('away')), 'permission unknown'],
    ['never answers', () => new Promise<boolean>(() => {}), 'permission unknown'],
  ])('ends when its permission %s', async (_how, ask, reason) => {
    const { subscribe: look, hub } = createLiveWorld();
    let isStillAllowed: () => boolean | Promise<boolean> = () => true;
    const looker = await look({ isStillAllowed: () => isStillAllowed() });
    isStillAllowed = ask;
    await until('it has ended', () => looker.isOver);
    expect([looker.of('end'), hub.subscribers]).toEqual([[{ kind: 'end', reason }], 0]);
  });

  it('ends when the next question about its permission is due and the last one hangs: within a second by the real times', async () => {
    const { subscribe: look } = createLiveWorld();
    let asked = 0;
    const isStillAllowed = () => (++asked > 1 ? new Promise<boolean>(() => {}) : true);
    const looker = await look({ isStillAllowed });
    await until('it has ended', () => looker.isOver);
    expect([asked, 2 * LIVE_LIMITS.permissionMs]).toEqual([2, 1_000]);
  });

  it('sees what its filter wants, also when a fate makes it wanted, and is told how much it does not see', async () => {
    const { send, subscribe: look, commit, reject } = createLiveWorld();
    const filter = { ...NO_FILTER, fate: 'stored', surface: 'web' };
    const looker = await look({ filter });
    const place = await send({ surface: 'web' }, 0);
    await send({ surface: 'unity' }, 0);
    await reject();
    await until('all were seen', () => looker.status()?.seen === 3);
    expect(looker.of('message')).toEqual([]);
    commit(0, place.offset + 2);
    await until('it is told', () => looker.status()?.shown === 1);
    expect(looker.of('message')).toMatchObject([{ fate: 'stored', surface: 'web' }]);
    expect(looker.status()).toMatchObject({ seen: 3, shown: 1, lost: 0, share: 1 });
  });
});
