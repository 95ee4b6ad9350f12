import { randomBytes } from 'node:crypto';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { openOwnDatabase, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBatchLoop } from './batch-loop.ts';

const T = Date.now() - 60_000;

let own: Awaited<ReturnType<typeof openOwnDatabase>>;
beforeAll(async () => {
  own = await openOwnDatabase();
});
afterAll(() => own.close());

it('erasures wait while ClickHouse answers but refuses inserts, none is set aside, and all are done within seconds after', async () => {
  const [records, rows, people] = [openErasureRecords(own.target), openErasureRows(own.target), openMemoryPeople()];
  await people.rebuild.mintEpoch();
  const requests = Array.from({ length: 2 }, (_, at) => ({
    erasureId: randomBytes(16),
    environmentId: 'outage',
    subjectKeys: [randomBytes(16)],
    memberKeys: [],
    cutoffAt: T,
    requestedAt: T - 2_000 + at,
    traceId: '',
  }));
  for (const { erasureId, environmentId, subjectKeys: keys } of requests)
    await people.guards.putHold({ erasureId, environmentId, keys, cutoffMs: T, lapsesAtMs: null });
  await records.addRequests(requests);
  // One part is all that fits: every further insert is refused with TOO_MANY_PARTS.
  const stranger = { batchId: randomBytes(16), erasureId: randomBytes(16), environmentId: 'stranger', cutoffAt: T };
  await rows.putTargets(stranger.batchId, [{ environmentId: 'stranger', key: randomBytes(16), cutoffMs: T }]);
  await own.query('ALTER TABLE erasure_targets MODIFY SETTING max_parts_in_total = 1');
  const errors: string[] = [];
  let faults = 0;
  const loop = openBatchLoop({
    people,
    rows,
    records,
    generation: 0,
    wallClockMs: Date.now,
    pause: async () => {},
    putBack: async () => {},
    barrier: { linksStored: async () => [], allStored: async () => ({}), linkCommits: async () => new Map() },
    windowMs: 0,
    batchRequestsMax: 2,
    logger: createLogger({ service: 'test', level: 'error' }, { write: (line: string) => errors.push(line) }),
    onPoll: () => {},
    onFault: () => faults++,
    onHandover: () => {},
    startBatch: () => () => {},
    isHealthy: () => records.ready(),
    aside: new Set<string>(),
  });
  loop.lead();
  await until('both have failed alone three times', () => {
    loop.wake();
    return faults >= 7;
  });
  await own.query('ALTER TABLE erasure_targets RESET SETTING max_parts_in_total');
  const repairedMs = performance.now();
  await until('all are erased', async () => (await records.readUnfinished()).length === 0);
  expect(performance.now() - repairedMs).toBeLessThan(20_000);
  expect(errors).toEqual([]);
  await loop.close();
  await Promise.all([records.close(), rows.close()]);
}, 120_000);
