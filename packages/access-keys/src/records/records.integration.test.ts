import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { createMemoryRecordLog, createMemoryRecords } from '../memory/index.ts';
import { RATE_LIMIT_KEYS, type RateLimitKeyRecord } from '../rate-limit-keys/rate-limit-key.ts';
import { openRedisRecords, type RedisRecordView } from '../redis/index.ts';
import { catchUpRecords, rebuildRecords } from './level.ts';
import { openRecordCopy } from './record-copy.ts';
import { createRecordStore } from './record-store.ts';
import type { RecordView } from './record-view.ts';
import { IncompleteViewFault, LogLost, Overtaken, ViewFault } from './view-faults.ts';

type R = RateLimitKeyRecord;
const kind = RATE_LIMIT_KEYS;
const author = { changedBy: 'ada', requestId: 'r-1' };
const base = `test-${randomUUID()}:`;
const redis = new Redis(testStores().redis);
const opened: RedisRecordView<R>[] = [];
const empty = async (namespace: string) => {
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
};
afterAll(async () => {
  for (const view of opened) await view.close();
  await empty(base);
  redis.disconnect();
});

/** A view, and what happens to stores. */
interface World {
  readonly view: RecordView<R>;
  /** The store is started anew, with all that it held. */
  restart(): Promise<void>;
  empty(): Promise<void>;
}

async function openRedisWorld(): Promise<World> {
  const namespace = `${base}${randomUUID()}:`;
  const view = await openRedisRecords(kind, { url: testStores().redis, namespace });
  opened.push(view);
  const restart = async () =>
    void (await redis.set(`${namespace}access:rate-limit-keys:complete`, 'the run before', 'XX'));
  return { view, restart, empty: () => empty(namespace) };
}

async function openMemoryWorld(): Promise<World> {
  const view = createMemoryRecords(kind);
  return { view, restart: async () => view.restart(), empty: async () => view.empty() };
}

const contentOf = (keyId: string, calls = 1) => ({
  ...{ keyId, calls, partner: 'Acme', windowS: 60, expiresAt: null, revokedAt: null },
  ...{ hash: `hash of ${keyId} ${calls}`, first4: 'abcd', last4: 'wxyz', createdAt: 1 },
});
/** The view of a process that dies before it reaches the view. */
const dying = (view: RecordView<R>): RecordView<R> => ({ ...view, update: () => Promise.reject(new Error('killed')) });

describe.each([
  ['memory', openMemoryWorld, 100],
  ['redis', openRedisWorld, 25],
])('records in %s', (_name, openWorld, numRuns) => {
  async function setUp() {
    const world = await openWorld();
    const log = createMemoryRecordLog<R>();
    const pair = { view: world.view, log };
    const store = createRecordStore(kind, pair, author);
    const put = (keyId: string, calls?: number) => store.change(() => contentOf(keyId, calls));
    return { ...world, log, pair, store, put };
  }

  it('stand in the log before the view, and say who changed them, with what request, and how often', async () => {
    const { view, log, pair } = await setUp();
    const seen: number[] = [];
    const watched = {
      ...view,
      update: (update: Parameters<typeof view.update>[0]) => {
        seen.push(log.appended.length);
        return view.update(update);
      },
    };
    const store = createRecordStore(kind, { ...pair, view: watched }, author);
    await store.change(() => contentOf('a', 1));
    await store.change(() => contentOf('a', 2));
    expect(seen).toEqual([0, 1, 2]);
    expect(log.appended).toMatchObject([
      { calls: 1, revision: 1, ...author },
      { calls: 2, revision: 2, ...author },
    ]);
    expect(await store.readAll()).toEqual([log.appended[1]]);
  });

  it('are not changed, and nothing is logged, when the change is refused', async () => {
    const { log, store, put } = await setUp();
    await put('a');
    const refused = store.change(() => {
      throw new Error('no');
    });
    await expect(refused).rejects.toThrow('no');
    expect(await store.change(() => null)).toBeNull();
    expect(log.appended).toHaveLength(1);
  });

  it('are decided one change at a time, whoever asks', async () => {
    const { store, put, log } = await setUp();
    await put('a', 0);
    const raise = () => store.change(([record]) => contentOf('a', (record?.calls ?? 0) + 1));
    await Promise.all(Array.from({ length: 5 }, raise));
    expect(log.appended.at(-1)).toMatchObject({ calls: 5, revision: 6 });
  });

  it('keep the change of whoever was first, and tell the other one, when a turn ended too soon', async () => {
    const { view, log, pair, store, put } = await setUp();
    await put('a', 1);
    const rival = createRecordStore(kind, { ...pair, view: { ...view, exclusive: (work) => work() } }, author);
    const late = {
      ...log,
      append: async (record: R) => {
        if (record.calls === 9)
          for (const calls of [2, 3]) await rival.change(() => ({ ...contentOf('a', calls), revokedAt: 7 }));
        return log.append(record);
      },
    };
    const overtaken = createRecordStore(kind, { view, log: late }, author).change(() => contentOf('a', 9));
    await expect(overtaken).rejects.toThrow(Overtaken);
    const standing = [{ calls: 3, revokedAt: 7, revision: 4 }];
    expect(await store.readAll()).toMatchObject(standing);
    expect(log.appended.at(-1)).toMatchObject(standing[0]!);
    expect((await rebuildRecords(kind, pair)).records).toMatchObject(standing);
    await put('b', 1);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('cannot be asked for before all of them are there, and can although there are none', async () => {
    const { view, pair } = await setUp();
    await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
    expect(await catchUpRecords(pair)).toBe(0);
    expect((await view.readSince(null)).records).toEqual([]);
  });

  it('miss nothing of a change that died between log and view, once anybody looks at the places', async () => {
    const { view, pair, put, store } = await setUp();
    await put('a', 1);
    const killed = createRecordStore(kind, { ...pair, view: { ...view, update: dying(view).update } }, author);
    await expect(killed.change(() => contentOf('a', 2))).rejects.toThrow(ViewFault);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 1 }]);
    expect(await catchUpRecords(pair)).toBe(1);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 2 }]);
    expect(await catchUpRecords(pair)).toBeNull();
    await expect(killed.change(() => contentOf('b'))).rejects.toThrow(ViewFault);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('come back after a start of the store, and after it was emptied; until then nobody is told that there are none', async () => {
    const { view, pair, put, ...world } = await setUp();
    await put('a');
    for (const lose of [world.restart, world.empty]) {
      await lose();
      await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
      await catchUpRecords(pair);
      expect((await view.readSince(null)).records).toMatchObject([{ keyId: 'a' }]);
    }
  });

  it('are read whole again when the store is emptied in the middle of a change', async () => {
    const { view, pair, put, log, ...world } = await setUp();
    await put('a');
    const emptied = {
      ...log,
      append: async (record: R) => {
        const place = await log.append(record);
        await world.empty();
        return place;
      },
    };
    await createRecordStore(kind, { ...pair, log: emptied }, author).change(() => contentOf('b'));
    await catchUpRecords(pair);
    expect((await view.readSince(null)).records).toHaveLength(2);
  });

  it('are not brought in under a run of the store that is over', async () => {
    const { view } = await setUp();
    await expect(view.update({ changes: [], moves: [], completeIn: 'the run before' })).rejects.toThrow('anew');
    expect((await view.standing()).completeIn).toBeNull();
  });

  it('keep the later revision, in whatever order they are brought in', async () => {
    const { view, put, log, pair } = await setUp();
    for (const calls of [1, 2, 3]) await put('a', calls);
    const changes = log.appended.map((record, offset) => ({ record, partition: 0, offset }));
    await view.update({ changes: changes.toReversed(), moves: [], completeIn: null });
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
    await rebuildRecords(kind, pair);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
  });

  it('are made equal to the log by a rebuild: what it lacks goes, what it has comes', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    const stranger = { ...log.appended[0]!, keyId: 'stranger' };
    const newer = { ...log.appended[0]!, revision: 9 };
    const strangers = [stranger, newer].map((record) => ({ record, partition: 0, offset: 7 }));
    await view.update({ changes: strangers, moves: [{ partition: 0, from: 1, to: 9 }], completeIn: null });
    await expect(catchUpRecords(pair)).rejects.toThrow(LogLost);
    expect(await rebuildRecords(kind, pair)).toEqual({ records: log.appended, removed: 2 });
    expect((await view.readSince(null)).records).toEqual(log.appended);
    expect(await catchUpRecords(pair)).toBeNull();
  });

  it('are left alone by a rebuild whose log is empty', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    log.appended.length = 0;
    await expect(rebuildRecords(kind, pair)).rejects.toThrow(LogLost);
    expect((await view.readSince(null)).records).toHaveLength(1);
  });

  it('are in a copy as the log has them after each refresh, whatever died, was restarted or was emptied', async () => {
    const act = fc.record({
      name: fc.constantFrom('put', 'die', 'restart', 'empty', 'rebuild', 'look'),
      keyId: fc.constantFrom('a', 'b', 'c'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
        const { view, pair, put, log, ...world } = await setUp();
        const copy = openRecordCopy({ view, lookEveryMs: 0 });
        const killed = createRecordStore(kind, { ...pair, view: { ...view, update: dying(view).update } }, author);
        for (const [at, { name, keyId }] of acts.entries()) {
          if (name === 'put') await put(keyId, at);
          if (name === 'die') await killed.change(() => contentOf(keyId, at)).catch(() => {});
          if (name === 'restart') await world.restart();
          if (name === 'empty') await world.empty();
          if (name === 'rebuild') await rebuildRecords(kind, pair);
          if (name === 'look') void copy.refresh().catch(() => {});
        }
        await catchUpRecords(pair);
        await copy.refresh();
        const last = new Map(log.appended.map((record) => [record.keyId, record]));
        expect(new Map(copy.records.map((record) => [record.keyId, record]))).toEqual(last);
        copy.close();
      }),
      { numRuns },
    );
  });
});
