import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { openMemoryErasureRecords, openMemoryErasureRows } from '@playline/erasure/memory';
import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BatchLoop, type BatchLoopParts, openBatchLoop } from './batch-loop.ts';

const T = Date.UTC(2026, 5, 15);
const idOf = ({ erasureId }: Pick<ErasureRequest, 'erasureId'>) => erasureId.toString('hex');
const createKeys = (count: number) => Array.from({ length: count }, () => randomBytes(16));

let people: ReturnType<typeof openMemoryPeople>;
let rows: ReturnType<typeof openMemoryErasureRows>;
let records: ReturnType<typeof openMemoryErasureRecords>;
let loop: BatchLoop;
beforeEach(async () => {
  people = openMemoryPeople();
  rows = openMemoryErasureRows();
  records = openMemoryErasureRecords(() => T);
  await people.rebuild.mintEpoch();
});
afterEach(() => loop.close());

const BARRIER: BatchLoopParts['barrier'] = {
  linksStored: async () => [],
  allStored: async () => ({}),
  linkCommits: async () => new Map(),
};

/** Starts the loop without pauses and with an empty log. */
function lead(parts: Partial<BatchLoopParts> = {}): void {
  loop = openBatchLoop({
    people,
    rows,
    records,
    generation: 0,
    wallClockMs: () => T,
    pause: async () => {},
    republishLater: async () => {},
    barrier: BARRIER,
    windowMs: 0,
    batchRequestsMax: 8,
    logger: createLogger({ service: 'test', level: 'silent' }),
    onPoll: () => {},
    onFault: () => {},
    onHandover: () => {},
    startBatch: () => () => {},
    isHealthy: async () => true,
    deferred: new Set<string>(),
    ...parts,
  });
  loop.lead();
}

async function addRequest(key: Buffer = randomBytes(16), times = { cutoffAt: T, requestedAt: T - 2_000 }) {
  const name = { erasureId: randomBytes(16), environmentId: 'env' };
  const request: ErasureRequest = { ...name, ...times, subjectKeys: [key], memberKeys: [], traceId: '' };
  await people.guards.putHold({ ...name, keys: [key], cutoffMs: times.cutoffAt, lapsesAtMs: null });
  await records.addRequests([request]);
  return request;
}

const isDone = async ({ erasureId }: ErasureRequest) => (await records.readReceipt(erasureId)) !== null;
const unfinishedIds = async () => (await records.readUnfinished()).map(idOf);

/** Stores the links of a person who has many identities and returns the keys of these identities. */
function addManyLinks(): Buffer[] {
  const keys = createKeys(150);
  for (const [offset, b_key] of keys.slice(1).entries())
    rows.add('identity_links', {
      environment_id: 'env',
      link_generation: 0,
      link_partition: 0,
      link_offset: offset,
      message_id: offset,
      outcome: 'linked',
      a_key: keys[0],
      b_key,
      person_key: Buffer.alloc(16),
      event_time: T,
      received_at: T,
    });
  return keys;
}

it('a failing batch is retried and delays only the people in that batch', async () => {
  let stuckBatch: string | null = null;
  const sweep: typeof rows.sweep = async (batchId) => {
    stuckBatch ??= batchId.toString('hex');
    if (stuckBatch === batchId.toString('hex')) throw new StoreFault('no space', { kind: 'transient', code: 'X' });
    return rows.sweep(batchId);
  };
  const key = randomBytes(16);
  const first = await addRequest(key);
  lead({ rows: { ...rows, sweep }, windowMs: 10 });
  await until('the batch fails', () => stuckBatch !== null);
  const second = await addRequest(key);
  await addRequest();
  loop.wake();
  await until(
    'the other person is erased',
    async () => (await unfinishedIds()).join() === [first, second].map(idOf).join(),
  );
  stuckBatch = 'none';
  await until('all people are erased', async () => (await unfinishedIds()).length === 0);
  expect(await people.guards.listHolds('env')).toEqual([]);
});

it('requests that wait for another erasure do not delay unrelated requests', async () => {
  const [held, ...linked] = createKeys(3);
  // Simulates the hold of a long erasure.
  const name = { erasureId: randomBytes(16), environmentId: 'env' };
  await people.guards.putHold({ ...name, keys: [held!], cutoffMs: T, lapsesAtMs: null });
  const waiting = [];
  for (const key of linked) waiting.push(await addRequest(key, { cutoffAt: T + 10, requestedAt: T - 1_000 }));
  const unrelated = await addRequest(randomBytes(16), { cutoffAt: T + 10, requestedAt: T });
  const link = { environmentId: 'env', receivedAtMs: T + 5, isUnlink: false };
  const links = linked.map((key) => ({ ...link, keys: [held!, key] }));
  lead({ barrier: { ...BARRIER, linksStored: async () => links }, windowMs: 10, batchRequestsMax: 2 });
  await until('the other request is erased', async () => {
    loop.wake();
    return isDone(unrelated);
  });
  for (const request of waiting) expect(await isDone(request)).toBe(false);
});

it('a request that cannot be resolved is deferred while the other requests complete', async () => {
  const requests: ErasureRequest[] = [];
  for (let count = 0; count < 6; count++) requests.push(await addRequest());
  const poison = requests[2]!;
  const sizes: number[] = [];
  const putTargets: typeof rows.putTargets = async (batchId, targets) => {
    await rows.putTargets(batchId, targets);
    if (!targets.some(({ key }) => key.equals(poison.subjectKeys[0]!))) return;
    sizes.push(targets.length);
    throw new RangeError('Maximum call stack size exceeded');
  };
  const deferred = new Set<string>();
  lead({ rows: { ...rows, putTargets }, deferred });
  await until('all other people are erased and the request is deferred', async () => {
    loop.wake();
    return (await unfinishedIds()).length === 1 && deferred.size === 1;
  });
  expect([...deferred]).toEqual([idOf(poison)]);
  expect(sizes.at(-1)).toBe(1);
});

it.each([
  ['with many identities', false],
  ['whose batch another process started', true],
])('a person %s does not delay other people', async (_, isStarted) => {
  const keys = isStarted ? createKeys(150) : addManyLinks();
  const heavy = await addRequest(keys[0]);
  const { erasureId, environmentId, cutoffAt } = heavy;
  const progress = { batchId: randomBytes(16), erasureId, environmentId, cutoffAt, closureKeys: keys, deleted: {} };
  if (isStarted) await records.putProgress([progress]);
  const othersDone = Promise.withResolvers<void>();
  let isHeavySwept = false;
  const sweep: typeof rows.sweep = async (batchId) => {
    const batch = (await records.readProgress()).find((row) => row.batchId.equals(batchId));
    if (batch!.erasureId.equals(erasureId)) {
      isHeavySwept = true;
      await othersDone.promise;
    }
    return rows.sweep(batchId);
  };
  const other = await addRequest();
  lead({ rows: { ...rows, sweep } });
  await until('the other person is erased while the person with many links is swept', async () => {
    return isHeavySwept && (await isDone(other));
  });
  const later = await addRequest();
  loop.wake();
  await until('a later request completes', () => isDone(later));
  expect(await isDone(heavy)).toBe(false);
  othersDone.resolve();
  await until('the person with many links is erased', () => isDone(heavy));
});

it('a heavy request that cannot be resolved is retried with a pause', async () => {
  await addRequest(addManyLinks()[0]);
  let [reads, faults] = [0, 0];
  const readProgress: typeof records.readProgress = () => {
    reads++;
    return records.readProgress();
  };
  const putFound: typeof records.putFound = async () => {
    faults++;
    throw new RangeError('Invalid string length');
  };
  lead({ records: { ...records, readProgress, putFound } });
  await until('the request fails', () => faults > 0);
  const before = reads;
  // Without a pause, the loop would read dozens of times in these event loop turns.
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(reads - before).toBeLessThan(10);
});
