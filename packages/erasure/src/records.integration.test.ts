import { randomUUID } from 'node:crypto';
import { openStoreProxy } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openErasureRecords } from './clickhouse/index.ts';
import { ERASURE_STATES, type Erasure, type ErasureRecords, type StoredFence, stateOf } from './records.ts';
import { openMemoryErasureRecords } from './test/memory/records.ts';
import { openClickHouseHarness } from './test/open-rows.ts';
import { AT, createLink, createReceipt, createRequest, newId } from './test/records.ts';

async function openClickHouse(): Promise<{ records: ErasureRecords; close(): Promise<void> }> {
  const harness = await openClickHouseHarness();
  const records = openErasureRecords(harness.target);
  const close = async () => {
    await records.close();
    await harness.close();
  };
  return { records, close };
}

async function openMemory(): Promise<{ records: ErasureRecords; close(): Promise<void> }> {
  return { records: openMemoryErasureRecords(() => performance.timeOrigin + performance.now()), close: async () => {} };
}

describe.each([
  ['memory', openMemory],
  ['clickhouse', openClickHouse],
])('erasure records in %s', (_name, open) => {
  let records: ErasureRecords;
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ records, close } = await open());
  });
  afterAll(() => close());

  const readLatestFences = async (environmentId: string, knownParts?: ReadonlySet<string>) => {
    const latest = new Map<string, StoredFence>();
    for await (const fence of records.readFences({ ...(knownParts && { knownParts }) })) {
      const key = fence.key.toString('hex');
      const isHere = fence.environmentId === environmentId;
      if (isHere && fence.cutoffMs >= (latest.get(key)?.cutoffMs ?? 0)) latest.set(key, fence);
    }
    return [...latest.values()];
  };

  it('readUnfinished returns each unfinished request once and unchanged, oldest first', async () => {
    const late = createRequest({ requestedAt: AT + 9, memberKeys: [newId()] });
    const early = createRequest({ requestedAt: AT + 1 });
    for (let round = 0; round < 2; round++) await records.putRequests([late, early]);
    const readOwn = async () => {
      const ids = [late, early].map(({ erasureId }) => erasureId.toString('hex'));
      return (await records.readUnfinished()).filter(({ erasureId }) => ids.includes(erasureId.toString('hex')));
    };
    expect(await readOwn()).toEqual([early, late]);
    await records.putReceipts([createReceipt({ erasureId: early.erasureId })]);
    expect(await readOwn()).toEqual([late]);
  });

  it('addRequests keeps the members and links that an eraser added to a stored request', async () => {
    const [request, other] = [createRequest(), createRequest()];
    const found = {
      ...request,
      memberKeys: [newId()],
      links: [createLink(newId()), { ...createLink(newId()), unlinkedAtMs: AT + 5 }],
    };
    await records.addRequests([request]);
    await records.putRequests([found]);
    await records.addRequests([request, other]);
    const kept = await records.readRequests([request.erasureId, other.erasureId]);
    expect(kept).toHaveLength(2);
    const { links: _, ...withoutLinks } = found;
    expect(kept).toEqual(expect.arrayContaining([withoutLinks, other]));
    const [environmentId, key] = [request.environmentId, request.subjectKeys[0]!];
    expect(await records.readOpenSince(0, [{ environmentId, key }])).toEqual([{ request: found, receipt: null }]);
  });

  it('readOpenSince finds erasures by subject, member or link until they have a receipt', async () => {
    const [environmentId, member] = [`test-${randomUUID()}`, newId()];
    const shared = { environmentId, memberKeys: [member] };
    const [linked, late, early] = [newId(), createRequest(shared), createRequest(shared)] as const;
    const waiting = createRequest({ ...shared, links: [createLink(linked)] });
    const elsewhere = createRequest({ memberKeys: [member] });
    await records.addRequests([waiting, late, early, elsewhere, createRequest({ environmentId })]);
    const after = createReceipt({ erasureId: late.erasureId, visiblyErasedAt: AT });
    await records.putReceipts([createReceipt({ erasureId: early.erasureId, visiblyErasedAt: AT - 1 }), after]);
    const find = (key: Buffer) => records.readOpenSince(AT, [{ environmentId, key }]);
    const open = { request: waiting, receipt: null };
    const found = await find(member);
    expect([found.length, found]).toEqual([2, expect.arrayContaining([open, { request: late, receipt: after }])]);
    expect(await find(waiting.subjectKeys[1]!)).toEqual([open]);
    expect(await find(linked)).toEqual([open]);
    expect(await find(newId())).toEqual([]);
  });

  it('putFound ignores requests that have progress or a receipt', async () => {
    const [unstarted, started, done] = [createRequest(), createRequest(), createRequest()] as const;
    await records.addRequests([unstarted, started, done]);
    const { erasureId, environmentId } = started;
    const batchId = newId();
    await records.putProgress([{ batchId, erasureId, environmentId, cutoffAt: AT, closureKeys: [], deleted: {} }]);
    await records.putReceipts([createReceipt({ erasureId: done.erasureId })]);
    const found = [unstarted, started, done].map((request) => ({ ...request, memberKeys: [newId()] }));
    await records.putFound(found);
    const kept = await records.readRequests(found.map((request) => request.erasureId));
    await records.dropProgress(batchId);
    expect(kept).toHaveLength(3);
    expect(kept).toEqual(expect.arrayContaining([found[0], started, done]));
  });

  it("an identity's latest cut-off applies regardless of the order of fences", async () => {
    const environmentId = `test-${randomUUID()}`;
    const [one, other] = [newId(), newId()];
    const fence = (key: Buffer, cutoffMs: number) => ({ environmentId, key, cutoffMs, erasureId: newId() });
    await records.putFences([fence(one, AT + 5), fence(other, AT)]);
    await records.putFences([fence(one, AT), fence(other, AT + 5)]);
    const fences = await readLatestFences(environmentId);
    expect(fences.map(({ key, cutoffMs }) => [key.toString('hex'), cutoffMs]).sort()).toEqual(
      [one, other].map((key) => [key.toString('hex'), AT + 5]).sort(),
    );
    await records.putFences([]);
    expect(await readLatestFences(`${environmentId}-b`)).toEqual([]);
  });

  it('readFences returns fences with their timestamp and part, and skips known parts', async () => {
    const environmentId = `test-${randomUUID()}`;
    const fence = { environmentId, key: newId(), cutoffMs: AT, erasureId: newId() };
    await records.putFences([fence]);
    const [stored] = await readLatestFences(environmentId);
    expect(stored).toEqual({ ...fence, fencedAtMs: expect.any(Number), part: expect.any(String) });
    const known = new Set([stored!.part]);
    expect(await readLatestFences(environmentId, known)).toEqual([]);
    const later = { ...fence, key: newId() };
    await records.putFences([later]);
    expect((await readLatestFences(environmentId, known)).map(({ key }) => key)).toContainEqual(later.key);
    expect(await readLatestFences(environmentId)).toHaveLength(2);
  });

  it('readProgress returns the latest copy until the batch is dropped', async () => {
    const batches = [newId(), newId()] as const;
    const erasure = { erasureId: newId(), environmentId: 'test', cutoffAt: AT, closureKeys: [newId(), newId()] };
    const first = { ...erasure, batchId: batches[0], deleted: {} };
    const other = { ...erasure, batchId: batches[1], deleted: { 'redis.i': 1 } };
    await records.putProgress([first, other]);
    const further = { ...first, deleted: { 'clickhouse.events': 12 } };
    for (let round = 0; round < 2; round++) await records.putProgress([further]);
    const readOwn = async () =>
      (await records.readProgress()).filter(({ batchId }) => batches.some((id) => id.equals(batchId)));
    expect((await readOwn()).sort((a, b) => Buffer.compare(b.batchId, a.batchId))).toEqual(
      [further, other].sort((a, b) => Buffer.compare(b.batchId, a.batchId)),
    );
    for (let round = 0; round < 2; round++) await records.dropProgress(batches[0]);
    expect(await readOwn()).toEqual([other]);
    await records.dropProgress(batches[1]);
  });

  it('putFences rejects the zero key', async () => {
    const zero = { environmentId: 'test', key: Buffer.alloc(16), cutoffMs: AT, erasureId: newId() };
    await expect(records.putFences([zero])).rejects.toThrow(RangeError);
  });

  it('readReceipt returns the most complete copy of a receipt', async () => {
    const first = createReceipt();
    expect(await records.readReceipt(first.erasureId)).toBeNull();
    await records.putReceipts([first]);
    expect(await records.readReceipt(first.erasureId)).toEqual(first);
    const physical = { ...first, physicallyErasedAt: AT + 30_003 };
    await records.putReceipts([physical]);
    await records.putReceipts([first]);
    expect(await records.readReceipt(first.erasureId)).toEqual(physical);
  });

  it('readFinished returns the ids of finished erasures, and readRequests returns requests by id', async () => {
    const [done, waiting] = [createRequest({ memberKeys: [newId()] }), createRequest()];
    await records.putRequests([done, waiting, done]);
    await records.putReceipts([createReceipt({ erasureId: done.erasureId })]);
    const finished = await records.readFinished();
    expect(finished.has(done.erasureId.toString('hex'))).toBe(true);
    expect(finished.has(waiting.erasureId.toString('hex'))).toBe(false);
    expect(await records.readRequests([newId(), done.erasureId])).toEqual([done]);
    expect(await records.readRequests([])).toEqual([]);
    const many = Array.from({ length: 1_200 }, newId);
    expect(await records.readRequests([...many, waiting.erasureId])).toEqual([waiting]);
  });

  it('readErasures pages through all erasures, newest first and without duplicates, for every filter', async () => {
    const environmentId = `test-${randomUUID()}`;
    const times = [{}, { physicallyErasedAt: AT }, { logExpiredAt: AT }, { physicallyErasedAt: AT, logExpiredAt: AT }];
    const put: Erasure[] = [];
    for (let index = 0; index < 15; index++) {
      const request = createRequest({ environmentId, requestedAt: AT + (index % 4) });
      const set = times[index % 5];
      const { erasureId } = request;
      put.push({ request, receipt: set === undefined ? null : createReceipt({ erasureId, environmentId, ...set }) });
    }
    await records.putRequests([...put.map(({ request }) => request), createRequest()]);
    const receipts = put.flatMap(({ receipt }) => receipt ?? []);
    await records.putReceipts(
      receipts.map((receipt) => ({ ...receipt, physicallyErasedAt: null, logExpiredAt: null })),
    );
    await records.putReceipts(receipts);
    put.sort(({ request: one }, { request: other }) => {
      return other.requestedAt - one.requestedAt || Buffer.compare(other.erasureId, one.erasureId);
    });
    for (const state of [undefined, ...ERASURE_STATES])
      for (const erasuresMax of [3, 100]) {
        const expected = put.filter(({ receipt }) => state === undefined || stateOf(receipt) === state);
        const listed: Erasure[] = [];
        for (;;) {
          const after = listed.at(-1)?.request;
          const page = { environmentId, erasuresMax, ...(state && { state }), ...(after && { after }) };
          const erasures = await records.readErasures(page);
          expect(erasures.length).toBeLessThanOrEqual(erasuresMax);
          listed.push(...erasures);
          if (erasures.length < erasuresMax) break;
        }
        expect(listed).toEqual(expected);
      }
    const all = (await records.readErasures({ erasuresMax: 1_000 })).map(({ request }) => request.environmentId);
    expect(all).toContain(environmentId);
    expect(new Set(all).size).toBeGreaterThan(1);
  });

  it('readOpenReceipts returns receipts without physicallyErasedAt or logExpiredAt', async () => {
    const [unmarked, erased, complete] = [createReceipt({ acceptedAt: AT + 1 }), createReceipt(), createReceipt()];
    const times = { physicallyErasedAt: AT, logExpiredAt: AT };
    const put = [unmarked, { ...erased, physicallyErasedAt: AT }, { ...complete, ...times }];
    await records.putReceipts(put);
    const ids = put.map(({ erasureId }) => erasureId.toString('hex'));
    const open = (await records.readOpenReceipts()).filter(({ erasureId }) => ids.includes(erasureId.toString('hex')));
    expect(open).toEqual([put[1], unmarked]);
  });
});

describe('erasure records in ClickHouse', () => {
  it('the records are not ready and every call rejects while ClickHouse is unreachable', async () => {
    const records = openErasureRecords({ url: 'http://127.0.0.1:1', user: 'none', password: '', database: 'none' });
    expect(await records.ready()).toBe(false);
    const fault = { name: 'StoreFault', kind: 'transient' };
    await expect(records.putRequests([createRequest()])).rejects.toMatchObject(fault);
    await expect(records.readUnfinished()).rejects.toMatchObject(fault);
    const fences = records.readFences()[Symbol.asyncIterator]();
    await expect(fences.next()).rejects.toMatchObject(fault);
    await records.close();
  });

  it('aborting a query frees its connection while ClickHouse hangs', async () => {
    const harness = await openClickHouseHarness();
    const wire = await openStoreProxy(Number(new URL(harness.target.url).port));
    const records = openErasureRecords({ ...harness.target, url: `http://127.0.0.1:${wire.port}` });
    wire.mode = 'hung';
    for (let round = 0; round < 6; round++) {
      const reading = records.readFences({ signal: AbortSignal.timeout(100) })[Symbol.asyncIterator]();
      await expect(reading.next()).rejects.toMatchObject({ name: 'StoreFault', kind: 'transient' });
    }
    wire.mode = 'open';
    for await (const fence of records.readFences({ signal: AbortSignal.timeout(30_000) }))
      expect(fence.part).not.toBe('');
    await records.close();
    await wire.close();
    await harness.close();
  });
});
