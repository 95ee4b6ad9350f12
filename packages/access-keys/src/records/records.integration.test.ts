import { randomUUID } from 'node:crypto';
import { testStores } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { RATE_LIMIT_KEYS, type RateLimitKeyRecord } from '../rate-limit-keys/rate-limit-key.ts';
import { openRedisRecords, type RedisRecordView } from '../redis/index.ts';
import { createMemoryRecordLog, createMemoryRecords } from '../test/memory-records.ts';
import { openRecordCopy } from './record-copy.ts';
import { createRecordStore } from './record-store.ts';
import { IncompleteViewFault, LogLost, Overtaken, type RecordView, ViewFault } from './record-view.ts';
import { rebuildRecords, syncFromLog } from './sync-from-log.ts';

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
    const store = createRecordStore(pair, author);
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
    const store = createRecordStore({ ...pair, view: watched }, author);
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
    const rival = createRecordStore({ ...pair, view: { ...view, exclusive: (work) => work() } }, author);
    const late = {
      ...log,
      append: async (record: R) => {
        if (record.calls === 9)
          for (const calls of [2, 3]) await rival.change(() => ({ ...contentOf('a', calls), revokedAt: 7 }));
        return log.append(record);
      },
    };
    const overtaken = createRecordStore({ view, log: late }, author).change(() => contentOf('a', 9));
    await expect(overtaken).rejects.toThrow(Overtaken);
    const standing = [{ calls: 3, revokedAt: 7, revision: 4 }];
    expect(await store.readAll()).toMatchObject(standing);
    expect(log.appended.at(-1)).toMatchObject(standing[0]!);
    expect((await rebuildRecords(pair)).records).toMatchObject(standing);
    await put('b', 1);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('cannot be asked for before all of them are there, and can although there are none', async () => {
    const { view, pair } = await setUp();
    await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
    expect(await syncFromLog(pair)).toBe(0);
    expect((await view.readSince(null)).records).toEqual([]);
  });

  it('miss nothing of a change that died between log and view, once anybody looks at the places', async () => {
    const { view, pair, put, store } = await setUp();
    await put('a', 1);
    const killed = createRecordStore({ ...pair, view: { ...view, update: dying(view).update } }, author);
    await expect(killed.change(() => contentOf('a', 2))).rejects.toThrow(ViewFault);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 1 }]);
    expect(await syncFromLog(pair)).toBe(1);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 2 }]);
    expect(await syncFromLog(pair)).toBeNull();
    await expect(killed.change(() => contentOf('b'))).rejects.toThrow(ViewFault);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('come back after a start of the store, and after it was emptied; until then nobody is told that there are none', async () => {
    const { view, pair, put, ...world } = await setUp();
    await put('a');
    for (const lose of [world.restart, world.empty]) {
      await lose();
      await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
      await syncFromLog(pair);
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
    await createRecordStore({ ...pair, log: emptied }, author).change(() => contentOf('b'));
    await syncFromLog(pair);
    expect((await view.readSince(null)).records).toHaveLength(2);
  });

  it('are not brought in under a run of the store that is over', async () => {
    const { view } = await setUp();
    await expect(view.update({ changes: [], moves: [], completeIn: 'the run before' })).rejects.toThrow('restarted');
    expect((await view.status()).completeIn).toBeNull();
  });

  it('keep the later revision, in whatever order they are brought in', async () => {
    const { view, put, log, pair } = await setUp();
    for (const calls of [1, 2, 3]) await put('a', calls);
    const changes = log.appended.map((record, offset) => ({ record, partition: 0, offset }));
    await view.update({ changes: changes.toReversed(), moves: [], completeIn: null });
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
    await rebuildRecords(pair);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
  });

  it('are made equal to the log by a rebuild: what it lacks goes, what it has comes', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    const stranger = { ...log.appended[0]!, keyId: 'stranger' };
    const newer = { ...log.appended[0]!, revision: 9 };
    const strangers = [stranger, newer].map((record) => ({ record, partition: 0, offset: 7 }));
    await view.update({ changes: strangers, moves: [{ partition: 0, from: 1, to: 9 }], completeIn: null });
    await expect(syncFromLog(pair)).rejects.toThrow(LogLost);
    expect(await rebuildRecords(pair)).toEqual({ records: log.appended, removed: 2 });
    expect((await view.readSince(null)).records).toEqual(log.appended);
    expect(await syncFromLog(pair)).toBeNull();
  });

  it('are left alone by a rebuild whose log is empty', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    log.appended.length = 0;
    await expect(rebuildRecords(pair)).rejects.toThrow(LogLost);
    expect((await view.readSince(null)).records).toHaveLength(1);
  });

  it('stay in use after a start of the store whose log has lost everything, and cannot be changed then', async () => {
    const { view, pair, put, log, ...world } = await setUp();
    await put('a');
    log.appended.length = 0;
    await world.restart();
    await expect(syncFromLog(pair)).rejects.toThrow(LogLost);
    expect((await view.readSince(null)).records).toMatchObject([{ keyId: 'a' }]);
    await expect(put('b')).rejects.toThrow(LogLost);
  });

  it('are in a copy as the log has them after each refresh, whatever died, was restarted or was emptied', async () => {
    const act = fc.record({
      name: fc.constantFrom('put', 'die', 'restart', 'empty', 'rebuild', 'look'),
      keyId: fc.constantFrom('a', 'b', 'c'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
        const { view, pair, put, log, ...world } = await setUp();
        const index = new Map<string, R>();
        const onChange = (before: R | undefined, after: R | undefined) => {
          if (before !== undefined) index.delete(before.keyId);
          if (after !== undefined) index.set(after.keyId, after);
        };
        const copy = openRecordCopy({ view, readEveryMs: 0, onChange });
        const killed = createRecordStore({ ...pair, view: { ...view, update: dying(view).update } }, author);
        for (const [at, { name, keyId }] of acts.entries()) {
          if (name === 'put') await put(keyId, at);
          if (name === 'die') await killed.change(() => contentOf(keyId, at)).catch(() => {});
          if (name === 'restart') await world.restart();
          if (name === 'empty') await world.empty();
          if (name === 'rebuild') await rebuildRecords(pair);
          if (name === 'look') void copy.refresh().catch(() => {});
        }
        await syncFromLog(pair);
        await copy.refresh();
        const last = new Map(log.appended.map((record) => [record.keyId, record]));
        expect(new Map(copy.records.map((record) => [record.keyId, record]))).toEqual(last);
        expect(index).toEqual(last);
        copy.close();
      }),
      { numRuns },
    );
  });
});

describe('a read of records in Redis', () => {
  async function setUp() {
    const { view } = await openRedisWorld();
    const pair = { view, log: createMemoryRecordLog<R>() };
    await syncFromLog(pair);
    return { view, pair, put: (keyId: string) => createRecordStore(pair, author).change(() => contentOf(keyId)) };
  }

  it('has only what has changed since a version, and nothing when nothing has', async () => {
    const { view, put } = await setUp();
    for (const keyId of ['a', 'b', 'c']) await put(keyId);
    const { version, isWhole } = await view.readSince(null);
    expect(isWhole).toBe(true);
    expect(await view.readSince(version)).toEqual({ version, isWhole: false, records: [] });
    const changed = [await put('b'), await put('d')];
    const page = await view.readSince(version);
    expect(page).toMatchObject({ isWhole: false, records: changed });
    expect((await view.readSince(page.version)).records).toEqual([]);
  });

  it('has everything when more was missed than is kept, and after a rebuild', async () => {
    const { view, pair, put } = await setUp();
    const first = await put('a');
    const { version } = await view.readSince(null);
    for (let offset = 1; offset <= 1_000; offset++) {
      const record = { ...first!, keyId: `missed ${offset}` };
      await view.update({ changes: [{ record, partition: 1, offset }], moves: [], completeIn: null });
    }
    const page = await view.readSince(version);
    expect([page.isWhole, page.records.length]).toEqual([true, 1_001]);
    await rebuildRecords(pair);
    const rebuilt = await view.readSince(page.version);
    expect([rebuilt.isWhole, rebuilt.records.length]).toEqual([true, 1]);
  });
});
