import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createMemoryStore } from '../test/index.ts';
import { ACCESS_KEYS, createKey, type NewKey, refreshKey, revokeKey, setKeyEnd } from './access-key.ts';
import { createKeyVerifier, openKeys } from './key-lookup.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

const prefix = 'svcapik';
const owner: Omit<NewKey, 'kind'> = { projectId: 'p', environmentId: 'e', environment: 'production' };
const wait = (maxMs: number) => fc.integer({ min: 0, max: maxMs });
const step = fc.record({
  action: fc.constantFrom('create', 'roll', 'end', 'keep', 'refresh', 'revoke', 'wait', 'crash'),
  kind: fc.constantFrom('publishable' as const, 'publishable' as const, 'secret' as const),
  target: fc.nat({ max: 30 }),
  inMs: fc.oneof(wait(50), wait(5_000)),
  waitMs: fc.oneof(fc.constant(0), wait(50), wait(5_000)),
  lateMs: wait(450),
});

/** What a caller may expect of a key: accepted before `endsAt`, refused from then on. */
interface Expected {
  readonly key: string;
  readonly keyId: string;
  readonly kind: NewKey['kind'];
  endsAt: number;
}

it('for any sequence of changes and times, exactly the keys whose end has not passed are accepted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
      const { view, store } = createMemoryStore(ACCESS_KEYS);
      const context = { store, prefix };
      const all: Expected[] = [];
      const clock = { ms: Date.now() };
      const open = () => openKeys({ view, now: () => clock.ms, wallClockMs: () => clock.ms, readEveryMs: 0 });
      let keys = open();
      for (const { action, kind, target, inMs, waitMs, lateMs } of steps) {
        clock.ms += waitMs;
        vi.setSystemTime(clock.ms);
        const live = all.filter((each) => each.kind === kind && each.endsAt > clock.ms);
        const chosen = live[target % live.length];
        const keyId = chosen?.keyId ?? 'none';
        const wanted = { ...owner, kind };
        const endsAt = clock.ms + inMs;
        const add = ({ key, record }: Awaited<ReturnType<typeof createKey>>) =>
          all.push({ key, keyId: record.keyId, kind, endsAt: Number.POSITIVE_INFINITY });
        const stop = (at: number) => {
          if (chosen !== undefined) chosen.endsAt = at;
        };
        const isPublishable = kind === 'publishable';
        const actions = {
          create: () => createKey(context, wanted).then(add),
          roll: () =>
            refreshKey(context, { ...wanted, keyId, endsAt })
              .then(add)
              .then(() => stop(endsAt)),
          end: () => setKeyEnd(context, { ...owner, keyId, endsAt }).then(() => stop(endsAt)),
          keep: () => setKeyEnd(context, { ...owner, keyId, endsAt: null }).then(() => stop(Number.POSITIVE_INFINITY)),
          refresh: () =>
            refreshKey(context, { ...wanted, keyId })
              .then(add)
              .then(() => stop(clock.ms)),
          revoke: () => revokeKey(context, { ...wanted, keyId }).then(() => stop(clock.ms)),
          wait: async () => {},
          crash: async () => {
            keys = open();
          },
        };
        const isPossible = {
          create: isPublishable ? live.length < 20 : live.length === 0,
          roll: isPublishable && chosen !== undefined && inMs > 0 && live.length < 20,
          end: isPublishable && chosen !== undefined && inMs > 0,
          keep: isPublishable && chosen !== undefined,
          refresh: chosen !== undefined,
          revoke: chosen !== undefined,
          wait: true,
          crash: true,
        };
        const outcome = actions[action]().then(
          () => true,
          () => false,
        );
        expect(await outcome, action).toBe(isPossible[action]);
        // First with a copy that is too old to be used, then with the copy that was just read.
        for (const passedMs of [501, lateMs]) {
          clock.ms += passedMs;
          for (const each of all) {
            const verify = createKeyVerifier({ keys, prefix, kind: each.kind });
            expect((await verify(each.key))?.keyId ?? null).toBe(each.endsAt > clock.ms ? each.keyId : null);
          }
        }
        expect(all.filter((each) => each.kind === 'secret' && each.endsAt > clock.ms).length).toBeLessThanOrEqual(1);
      }
    }),
    { numRuns: 60 },
  );
});
