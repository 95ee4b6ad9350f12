import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { type BatchLoopParts, openBatchLoop } from './batch-loop.ts';

const T = Date.UTC(2026, 5, 15);

const createRequest = (key: Buffer): ErasureRequest => ({
  erasureId: randomBytes(16),
  environmentId: 'env',
  subjectKeys: [key],
  memberKeys: [],
  cutoffAt: T,
  requestedAt: T - 2_000,
  traceId: '',
});

/** A loop on these stores, with a wait of nothing and nothing on the log that it must wait for. */
const openTestLoop = (parts: Pick<BatchLoopParts, 'people' | 'rows' | 'records'> & Partial<BatchLoopParts>) =>
  openBatchLoop({
    generation: 0,
    wallClockMs: () => T,
    pause: async () => {},
    putBack: async () => {},
    barrier: { linksStored: async () => [], allStored: async () => ({}), linkCommits: async () => new Map() },
    windowMs: 0,
    batchRequestsMax: 8,
    logger: createLogger({ service: 'test', level: 'silent' }),
    onPoll: () => {},
    onFault: () => {},
    onHandover: () => {},
    startBatch: () => () => {},
    isHealthy: async () => true,
    aside: new Set<string>(),
    ...parts,
  });

it('a batch that cannot be finished delays only its own people, and is retried', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const stuck = new Set<string>();
  const { sweep } = rows;
  rows.sweep = async (batchId) => {
    if (stuck.size === 0) stuck.add(batchId.toString('hex'));
    if (stuck.has(batchId.toString('hex'))) throw new StoreFault('a change fails', { kind: 'passing', code: 'X' });
    return sweep(batchId);
  };
  const loop = openTestLoop({
    people,
    rows,
    records,
    barrier: {
      linksStored: async () => [],
      allStored: async () => ({}),
      linkCommits: async () => new Map(),
    },
    windowMs: 10,
    batchRequestsMax: 10,
  });
  const [one, other] = [randomBytes(16), randomBytes(16)];
  const first = createRequest(one);
  const put = async (request: ErasureRequest) => {
    const { erasureId, environmentId, subjectKeys: keys } = request;
    await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
    await records.putRequests([request]);
  };
  const isLeft = async (...requests: ErasureRequest[]) => {
    const left = (await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex'));
    return left.join() === requests.map(({ erasureId }) => erasureId.toString('hex')).join();
  };
  await put(first);
  loop.lead();
  await until('its batch fails', () => stuck.size > 0);
  const [again, free] = [createRequest(one), createRequest(other)];
  await put(again);
  await put(free);
  loop.wake();
  await until('the other person is erased', () => isLeft(first, again));
  stuck.clear();
  stuck.add('none');
  await until('all are', () => isLeft());
  expect(await people.guards.listHolds('env')).toEqual([]);
  await loop.close();
});

it('requests that wait for another erasure do not delay other requests', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const [held, waiting, again, stranger] = Array.from({ length: 4 }, () => randomBytes(16)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  const first = createRequest(held);
  const late = { cutoffAt: T + 10, requestedAt: T - 1_000 };
  const others = [waiting, again].map((key) => ({ ...createRequest(key), ...late }));
  const last = { ...createRequest(stranger), ...late, requestedAt: T };
  // The hold of a long erasure, which is not otherwise part of this test.
  const { erasureId, environmentId } = first;
  await people.guards.putHold({ erasureId, environmentId, keys: [held], cutoffMs: T, lapsesAtMs: null });
  for (const { subjectKeys: keys, cutoffAt: cutoffMs, ...request } of [...others, last])
    await people.guards.putHold({ ...request, keys, cutoffMs, lapsesAtMs: null });
  await records.addRequests([...others, last]);
  const links = [waiting, again].map((key) => ({
    environmentId: 'env',
    receivedAtMs: T + 5,
    keys: [held, key],
    isUnlink: false,
  }));
  const loop = openTestLoop({
    people,
    rows,
    records,
    barrier: {
      linksStored: async () => links,
      allStored: async () => ({}),
      linkCommits: async () => new Map(),
    },
    windowMs: 10,
    batchRequestsMax: 2,
  });
  loop.lead();
  const isDone = async (request: ErasureRequest) => (await records.readReceipt(request.erasureId)) !== null;
  await until('the stranger is erased', async () => {
    loop.wake();
    return isDone(last);
  });
  for (const other of others) expect(await isDone(other)).toBe(false);
  await loop.close();
});

it('a request that cannot be resolved is set aside and retried alone, and the others are erased', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const requests = Array.from({ length: 6 }, () => createRequest(randomBytes(16)));
  const hostile = requests[2]!;
  for (const { erasureId, environmentId, subjectKeys: keys } of requests)
    await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
  await records.addRequests(requests);
  const { putTargets } = rows;
  const alone: number[] = [];
  const targeted = async (batchId: Buffer, targets: Parameters<typeof putTargets>[1]) => {
    await putTargets(batchId, targets);
    if (!targets.some(({ key }) => key.equals(hostile.subjectKeys[0]!))) return;
    alone.push(targets.length);
    throw new RangeError('Maximum call stack size exceeded');
  };
  const aside = new Set<string>();
  const loop = openTestLoop({
    people,
    records,
    rows: { ...rows, putTargets: targeted },
    aside,
  });
  loop.lead();
  await until('all others are erased', async () => {
    loop.wake();
    return (await records.readUnfinished()).length === 1;
  });
  await until('it is set aside', () => {
    loop.wake();
    return aside.size === 1;
  });
  expect([...aside]).toEqual([hostile.erasureId.toString('hex')]);
  expect(alone.at(-1)).toBe(1);
  await loop.close();
});

function addLinksAmong(rows: ReturnType<typeof openMemoryErasureRows>, keys: readonly Buffer[]): void {
  let offset = 0;
  for (const [at, a_key] of keys.entries())
    for (const b_key of keys.slice(at + 1))
      rows.add('identity_links', {
        environment_id: 'env',
        link_generation: 0,
        link_partition: 0,
        link_offset: offset,
        message_id: offset++,
        outcome: 'linked',
        a_key,
        b_key,
        person_key: Buffer.alloc(16),
        event_time: T,
        received_at: T,
      });
}

it('a person with more than ten thousand links is erased beside the others', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const flood = Array.from({ length: 150 }, () => randomBytes(16));
  addLinksAmong(rows, flood);
  const [heavy, ...others] = [flood[0]!, randomBytes(16), randomBytes(16)].map(createRequest);
  const put = async (request: ErasureRequest) => {
    const { erasureId, environmentId, subjectKeys: keys } = request;
    await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
    await records.addRequests([request]);
  };
  const isDone = async (request: ErasureRequest) => (await records.readReceipt(request.erasureId)) !== null;
  const othersDone = Promise.withResolvers<void>();
  const sweep: typeof rows.sweep = async (batchId) => {
    const batch = (await records.readProgress()).find((progress) => progress.batchId.equals(batchId));
    if (batch!.erasureId.equals(heavy!.erasureId)) await othersDone.promise;
    return rows.sweep(batchId);
  };
  const loop = openTestLoop({
    people,
    records,
    rows: { ...rows, sweep },
  });
  await put(heavy!);
  await put(others[0]!);
  loop.lead();
  await until('the first of the others is erased', () => isDone(others[0]!));
  await put(others[1]!);
  loop.wake();
  await until('a later request is erased too', () => isDone(others[1]!));
  expect(await isDone(heavy!)).toBe(false);
  othersDone.resolve();
  await until('the person with many links is erased', () => isDone(heavy!));
  await loop.close();
});

it('a heavy batch that another process started is finished beside the others', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const flood = Array.from({ length: 150 }, () => randomBytes(16));
  const [heavy, other] = [flood[0]!, randomBytes(16)].map(createRequest);
  for (const { erasureId, environmentId, subjectKeys: keys } of [heavy!, other!])
    await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
  await records.addRequests([heavy!, other!]);
  const { erasureId, environmentId, cutoffAt } = heavy!;
  await records.putProgress([
    { batchId: randomBytes(16), erasureId, environmentId, cutoffAt, closureKeys: flood, deleted: {} },
  ]);
  const isDone = async (request: ErasureRequest) => (await records.readReceipt(request.erasureId)) !== null;
  const otherDone = Promise.withResolvers<void>();
  let isHeavySwept = false;
  const sweep: typeof rows.sweep = async (batchId) => {
    const batch = (await records.readProgress()).find((progress) => progress.batchId.equals(batchId));
    if (batch!.erasureId.equals(erasureId)) {
      isHeavySwept = true;
      await otherDone.promise;
    }
    return rows.sweep(batchId);
  };
  const loop = openTestLoop({ people, records, rows: { ...rows, sweep } });
  loop.lead();
  await until('the other is erased while the batch of the person with many links is swept', async () => {
    return isHeavySwept && (await isDone(other!));
  });
  expect(await isDone(heavy!)).toBe(false);
  otherDone.resolve();
  await until('the person with many links is erased', () => isDone(heavy!));
  await loop.close();
});

it('a heavy request that cannot be resolved is retried after a pause', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const flood = Array.from({ length: 150 }, () => randomBytes(16));
  addLinksAmong(rows, flood);
  const heavy = createRequest(flood[0]!);
  const { erasureId, environmentId, subjectKeys: keys } = heavy;
  await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
  await records.addRequests([heavy]);
  let reads = 0;
  const readProgress: typeof records.readProgress = () => {
    reads++;
    return records.readProgress();
  };
  let faults = 0;
  const putFound: typeof records.putFound = async () => {
    faults++;
    throw new RangeError('Invalid string length');
  };
  const loop = openTestLoop({
    people,
    rows,
    records: { ...records, readProgress, putFound },
  });
  loop.lead();
  await until('it fails', () => faults > 0);
  const before = reads;
  // As many turns of the event loop as a loop without a pause needs for dozens of reads.
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(reads - before).toBeLessThan(10);
  await loop.close();
});
