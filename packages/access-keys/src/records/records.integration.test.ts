import { randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { RATE_LIMIT_KEYS, type RateLimitKeyRecord } from '../rate-limit-keys/rate-limit-key.ts';
import { openRedisRecords, type RedisRecordView } from '../redis/index.ts';
import { createMemoryRecordLog, createMemoryRecords } from '../test/memory-records.ts';
import { openRecordCopy } from './record-copy.ts';
import { createRecordStore } from './record-store.ts';
import { ConcurrentChange, IncompleteViewFault, LogLost, type RecordView, ViewFault } from './record-view.ts';
import { rebuildRecords, syncFromLog } from './sync-from-log.ts';

type R = RateLimitKeyRecord;
const kind = RATE_LIMIT_KEYS;
const author = { changedBy: 'ada', requestId: 'r-1' };
const base = `test-${randomUUID()}:`;
const { client: redis, close: disconnect } = openTestRedis();
const opened: RedisRecordView<R>[] = [];
const empty = async (namespace: string) => {
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
};
afterAll(async () => {
  for (const view of opened) await view.close();
  await empty(base);
  disconnect();
});

/** A view whose store can be restarted and emptied. */
interface World {
  readonly view: RecordView<R>;
  /** Restarts the store without losing data. */
  restart(): Promise<void>;
  empty(): Promise<void>;
}

async function openRedisWorld(): Promise<World> {
  const namespace = `${base}${randomUUID()}:`;
  const view = await openRedisRecords(kind, { ...testRedis(), namespace });
  opened.push(view);
  const restart = async () =>
    void (await redis.set(`${namespace}access:rate-limit-keys:complete`, 'the previous run', 'XX'));
  return { view, restart, empty: () => empty(namespace) };
}

async function openMemoryWorld(): Promise<World> {
  const view = createMemoryRecords(kind);
  return { view, restart: async () => view.restart(), empty: async () => view.empty() };
}

const contentOf = (keyId: string, calls = 1) => ({
  keyId,
  calls,
  partner: 'Acme',
  windowS: 60,
  expiresAt: null,
  revokedAt: null,
  hash: `hash of ${keyId} ${calls}`,
  first4: 'abcd',
  last4: 'wxyz',
  createdAt: 1,
});
/** Simulates a process that crashes before it updates the store. */
const crashing = (view: RecordView<R>): RecordView<R> => ({ ...view, update: () => Promise.reject(new Error('down')) });

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

  it('are written to the log before the view, with author and revision', async () => {
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

  it('are neither changed nor logged if the change is rejected', async () => {
    const { log, store, put } = await setUp();
    await put('a');
    const refused = store.change(() => {
      throw new Error('no');
    });
    await expect(refused).rejects.toThrow('no');
    expect(await store.change(() => null)).toBeNull();
    expect(log.appended).toHaveLength(1);
  });

  it('are changed one at a time by concurrent callers', async () => {
    const { store, put, log } = await setUp();
    await put('a', 0);
    const increment = () => store.change(([record]) => contentOf('a', (record?.calls ?? 0) + 1));
    await Promise.all(Array.from({ length: 5 }, increment));
    expect(log.appended.at(-1)).toMatchObject({ calls: 5, revision: 6 });
  });

  it('keep the first of two changes and reject the second if a lock expires early', async () => {
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
    const rejected = createRecordStore({ view, log: late }, author).change(() => contentOf('a', 9));
    await expect(rejected).rejects.toThrow(ConcurrentChange);
    const latest = [{ calls: 3, revokedAt: 7, revision: 4 }];
    expect(await store.readAll()).toMatchObject(latest);
    expect(log.appended.at(-1)).toMatchObject(latest[0]!);
    expect((await rebuildRecords(pair)).records).toMatchObject(latest);
    await put('b', 1);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('cannot be read before the log is applied, even if the log is empty', async () => {
    const { view, pair } = await setUp();
    await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
    expect(await syncFromLog(pair)).toBe(0);
    expect((await view.readSince(null)).records).toEqual([]);
  });

  it('include a change after the next sync even if the change reached only the log', async () => {
    const { view, pair, put, store } = await setUp();
    await put('a', 1);
    const crashed = createRecordStore({ ...pair, view: { ...view, update: crashing(view).update } }, author);
    await expect(crashed.change(() => contentOf('a', 2))).rejects.toThrow(ViewFault);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 1 }]);
    expect(await syncFromLog(pair)).toBe(1);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 2 }]);
    expect(await syncFromLog(pair)).toBeNull();
    await expect(crashed.change(() => contentOf('b'))).rejects.toThrow(ViewFault);
    expect(await store.readAll()).toHaveLength(2);
  });

  it('cannot be read between a restart or loss of the store and the next sync', async () => {
    const { view, pair, put, ...world } = await setUp();
    await put('a');
    for (const lose of [world.restart, world.empty]) {
      await lose();
      await expect(view.readSince(null)).rejects.toThrow(IncompleteViewFault);
      await syncFromLog(pair);
      expect((await view.readSince(null)).records).toMatchObject([{ keyId: 'a' }]);
    }
  });

  it('are restored by the next sync if the store is emptied during a change', async () => {
    const { view, pair, put, log, ...world } = await setUp();
    await put('a');
    const emptied = {
      ...log,
      append: async (record: R) => {
        const position = await log.append(record);
        await world.empty();
        return position;
      },
    };
    await createRecordStore({ ...pair, log: emptied }, author).change(() => contentOf('b'));
    await syncFromLog(pair);
    expect((await view.readSince(null)).records).toHaveLength(2);
  });

  it('are not updated if the store was restarted since the read', async () => {
    const { view } = await setUp();
    await expect(view.update({ changes: [], moves: [], completeIn: 'the previous run' })).rejects.toThrow('restarted');
    expect((await view.status()).completeIn).toBeNull();
  });

  it('keep the highest revision regardless of the order in which changes are applied', async () => {
    const { view, put, log, pair } = await setUp();
    for (const calls of [1, 2, 3]) await put('a', calls);
    const changes = log.appended.map((record, offset) => ({ record, partition: 0, offset }));
    await view.update({ changes: changes.toReversed(), moves: [], completeIn: null });
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
    await rebuildRecords(pair);
    expect((await view.readSince(null)).records).toMatchObject([{ calls: 3 }]);
  });

  it('match the log after a rebuild', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    const unlogged = { ...log.appended[0]!, keyId: 'unlogged' };
    const newer = { ...log.appended[0]!, revision: 9 };
    const extra = [unlogged, newer].map((record) => ({ record, partition: 0, offset: 7 }));
    await view.update({ changes: extra, moves: [{ partition: 0, from: 1, to: 9 }], completeIn: null });
    await expect(syncFromLog(pair)).rejects.toThrow(LogLost);
    expect(await rebuildRecords(pair)).toEqual({ records: log.appended, removed: 2 });
    expect((await view.readSince(null)).records).toEqual(log.appended);
    expect(await syncFromLog(pair)).toBeNull();
  });

  it('are not changed by a rebuild from an empty log', async () => {
    const { view, pair, put, log } = await setUp();
    await put('a');
    log.appended.length = 0;
    await expect(rebuildRecords(pair)).rejects.toThrow(LogLost);
    expect((await view.readSince(null)).records).toHaveLength(1);
  });

  it('stay readable but cannot be changed if the log has lost all data', async () => {
    const { view, pair, put, log, ...world } = await setUp();
    await put('a');
    log.appended.length = 0;
    await world.restart();
    await expect(syncFromLog(pair)).rejects.toThrow(LogLost);
    expect((await view.readSince(null)).records).toMatchObject([{ keyId: 'a' }]);
    await expect(put('b')).rejects.toThrow(LogLost);
  });

  it('match the log in every refreshed copy, for any sequence of changes and data loss', async () => {
    const step = fc.record({
      name: fc.constantFrom('put', 'crash', 'restart', 'empty', 'rebuild', 'refresh'),
      keyId: fc.constantFrom('a', 'b', 'c'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { view, pair, put, log, ...world } = await setUp();
        const index = new Map<string, R>();
        const onChange = (before: R | undefined, after: R | undefined) => {
          if (before !== undefined) index.delete(before.keyId);
          if (after !== undefined) index.set(after.keyId, after);
        };
        const copy = openRecordCopy({ view, readEveryMs: 0, onChange });
        const crashed = createRecordStore({ ...pair, view: { ...view, update: crashing(view).update } }, author);
        for (const [at, { name, keyId }] of steps.entries()) {
          if (name === 'put') await put(keyId, at);
          if (name === 'crash') await crashed.change(() => contentOf(keyId, at)).catch(() => {});
          if (name === 'restart') await world.restart();
          if (name === 'empty') await world.empty();
          if (name === 'rebuild') await rebuildRecords(pair);
          if (name === 'refresh') void copy.refresh().catch(() => {});
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

describe('reading records from Redis', () => {
  async function setUp() {
    const { view } = await openRedisWorld();
    const pair = { view, log: createMemoryRecordLog<R>() };
    await syncFromLog(pair);
    return { view, pair, put: (keyId: string) => createRecordStore(pair, author).change(() => contentOf(keyId)) };
  }

  it('returns only the changes since a version', async () => {
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

  it('returns all records after a rebuild, or if more changes were missed than are retained', async () => {
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
