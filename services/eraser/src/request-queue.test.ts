import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { createLogger } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RequestQueue } from './batch-loop.ts';
import { TooManyLinksError } from './steps/resolve.ts';

const createRequest = (): ErasureRequest => ({
  erasureId: randomBytes(16),
  environmentId: 'env',
  subjectKeys: [randomBytes(16)],
  memberKeys: [],
  cutoffAt: 1,
  requestedAt: 1,
  traceId: '',
});
const createRequests = (count: number) => Array.from({ length: count }, createRequest);
const diskFull = () =>
  new StoreFault('ClickHouse 243 NOT_ENOUGH_SPACE', { kind: 'transient', code: 'NOT_ENOUGH_SPACE' });

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function openQueue(waiting: Iterable<ErasureRequest>) {
  const lines: string[] = [];
  const deferred = new Set<string>();
  const unfinished = new Set(waiting);
  const queue = new RequestQueue({
    batchRequestsMax: 1_000,
    isHealthy: async () => true,
    onFault: () => {},
    deferred,
    started: { batches: 0 },
    logger: createLogger({ service: 'test', level: 'error' }, { write: (line: string) => lines.push(line) }),
  });
  /** @returns the number of started requests, or 'waits' if a store is assumed to be the cause */
  const attempt = async (fail: (requests: readonly ErasureRequest[]) => Error | null): Promise<number | 'waits'> => {
    const selected = queue.selectNext([...unfinished]);
    const begin = async () => {
      const error = fail(selected);
      if (error !== null) throw error;
      return selected;
    };
    const started = selected.length === 0 ? [] : await queue.attempt(selected, begin).catch(() => 'waits' as const);
    vi.advanceTimersByTime(1_000);
    if (started === 'waits') return started;
    for (const request of started ?? []) unfinished.delete(request);
    return started?.length ?? 0;
  };
  return { attempt, deferred, lines, unfinished };
}

it('an undetected outage defers no request, and afterwards a thousand requests start in two batches', async () => {
  const { attempt, deferred, lines, unfinished } = openQueue(createRequests(1_000));
  const during: (number | 'waits')[] = [];
  for (let attempts = 0; attempts < 120; attempts++) during.push(await attempt(diskFull));
  expect(during.slice(0, 3)).toEqual([0, 0, 0]);
  // After three failures, the loop waits before each attempt.
  expect(new Set(during.slice(3))).toEqual(new Set(['waits']));
  expect([deferred.size, lines, unfinished.size]).toEqual([0, [], 1_000]);
  expect(await attempt(() => null)).toBe(1);
  expect(await attempt(() => null)).toBe(999);
});

it('a single request starts on the first attempt after an outage', async () => {
  const { attempt, deferred, lines } = openQueue(createRequests(1));
  for (let attempts = 0; attempts < 50; attempts++) expect(await attempt(diskFull)).toBe('waits');
  expect([deferred.size, lines]).toEqual([0, []]);
  expect(await attempt(() => null)).toBe(1);
});

it('a request that fails alone is deferred once another request has started, and retried with backoff', async () => {
  const [poison, ...others] = createRequests(100);
  const { attempt, deferred, lines, unfinished } = openQueue([...others.slice(0, 40), poison!, ...others.slice(40)]);
  const fail = (requests: readonly ErasureRequest[]) => (requests.includes(poison!) ? new Error('no') : null);
  for (let attempts = 0; attempts < 30; attempts++) await attempt(fail);
  expect([...unfinished]).toEqual([poison]);
  for (let attempts = 0; attempts < 200; attempts++) {
    if (attempts % 5 === 0) unfinished.add(createRequest());
    await attempt(fail);
  }
  expect([...deferred]).toEqual([poison!.erasureId.toString('hex')]);
  expect(lines.map((line) => JSON.parse(line).retryMs).slice(0, 3)).toEqual([10_000, 20_000, 40_000]);
});

it('a request is deferred if it fails alone after the other requests in its batch have started', async () => {
  const requests = createRequests(6);
  const { attempt, deferred, unfinished } = openQueue(requests);
  const fail = (selected: readonly ErasureRequest[]) => (selected.includes(requests[2]!) ? new Error('no') : null);
  for (let attempts = 0; attempts < 6; attempts++) await attempt(fail);
  expect([...unfinished]).toEqual([requests[2]]);
  expect([...deferred]).toEqual([requests[2]!.erasureId.toString('hex')]);
});

it('two unresolvable requests are deferred while other requests start', async () => {
  const poison = createRequests(2);
  const { attempt, deferred, unfinished } = openQueue(poison);
  const fail = (selected: readonly ErasureRequest[]) =>
    selected.some((each) => poison.includes(each)) ? new Error('no') : null;
  for (let arrivals = 0; arrivals < 6; arrivals++) {
    for (let attempts = 0; attempts < 8; attempts++) await attempt(fail);
    unfinished.add(createRequest());
  }
  expect(deferred.size).toBe(2);
});

it('an outage while a batch is retried in halves defers at most two requests', async () => {
  const [poison, ...others] = createRequests(1_000);
  const { attempt, deferred, unfinished } = openQueue([poison!, ...others]);
  const fail = (selected: readonly ErasureRequest[]) => (selected.includes(poison!) ? new Error('no') : null);
  for (let attempts = 0; attempts < 7; attempts++) await attempt(fail);
  for (let attempts = 0; attempts < 100; attempts++) await attempt(diskFull);
  expect(deferred.size).toBeLessThan(3);
  for (let attempts = 0; attempts < 60; attempts++) await attempt(fail);
  expect([...unfinished]).toEqual([poison]);
});

it('a request that has too many links is deferred even if no other request has started', async () => {
  const { attempt, deferred } = openQueue(createRequests(1));
  await attempt(() => new TooManyLinksError('too many', []));
  expect(deferred.size).toBe(1);
});

it('unresolvable requests never block other requests', async () => {
  const flags = fc.array(fc.boolean(), { minLength: 1, maxLength: 64 });
  const property = fc.asyncProperty(flags, async (poisonAt) => {
    const requests = createRequests(poisonAt.length);
    const poison = new Set(requests.filter((_, at) => poisonAt[at]));
    const { attempt, deferred, unfinished } = openQueue(requests);
    const fail = (selected: readonly ErasureRequest[]) =>
      selected.some((each) => poison.has(each)) ? new Error('no') : null;
    // Halving isolates each poison request within a bounded number of attempts.
    const attemptsMax = 20 + 16 * poison.size;
    for (let attempts = 0; attempts < attemptsMax && unfinished.size > poison.size; attempts++) await attempt(fail);
    expect(unfinished).toEqual(poison);
    const ids = new Set([...poison].map(({ erasureId }) => erasureId.toString('hex')));
    for (const id of deferred) expect(ids).toContain(id);
  });
  await fc.assert(property, { numRuns: 200 });
});
