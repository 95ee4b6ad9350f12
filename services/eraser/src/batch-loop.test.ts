import { randomBytes } from 'node:crypto';
import { type ErasureRequest, RowsFault } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { openBatchLoop } from './batch-loop.ts';

const T = Date.UTC(2026, 5, 15);

const createRequest = (key: Buffer): ErasureRequest => ({
  ...{ erasureId: randomBytes(16), environmentId: 'env', subjectKeys: [key], memberKeys: [] },
  ...{ cutoffAt: T, requestedAt: T - 2_000, traceId: '' },
});

it('a batch that cannot be finished keeps back nobody but whom it is about, and is finished when it can be', async () => {
  const [people, rows, records] = [openMemoryPeople(), openMemoryErasureRows(), openMemoryErasureRecords(() => T)];
  await people.rebuild.mintEpoch();
  const stuck = new Set<string>();
  const { sweep } = rows;
  rows.sweep = async (batchId) => {
    if (stuck.size === 0) stuck.add(batchId.toString('hex'));
    if (stuck.has(batchId.toString('hex'))) throw new RowsFault('a change fails', { isRetryable: true, code: 'X' });
    return sweep(batchId);
  };
  const loop = openBatchLoop({
    ...{ people, rows, records, generation: 0, wallClockMs: () => T, pause: async () => {}, putBack: async () => {} },
    barrier: {
      linksStored: async () => [],
      allStored: async () => ({ byName: {}, consents: new Map() }),
      linkCommits: async () => new Map(),
    },
    ...{ windowMs: 10, batchRequestsMax: 10, logger: createLogger({ service: 'test', level: 'silent' }) },
    ...{ onLook: () => {}, onFault: () => {}, onHandover: () => {}, startBatch: () => () => {} },
  });
  const [one, other] = [randomBytes(16), randomBytes(16)];
  const first = createRequest(one);
  const put = async (request: ErasureRequest) => {
    const { erasureId, environmentId, subjectKeys: keys } = request;
    await people.guards.place({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
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
  expect(await people.guards.list('env')).toEqual([]);
  await loop.close();
});
