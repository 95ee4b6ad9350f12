import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { createLogger } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createRequestQueue } from './request-queue.ts';

const createRequest = (): ErasureRequest => ({
  erasureId: randomBytes(16),
  environmentId: 'env',
  subjectKeys: [randomBytes(16)],
  memberKeys: [],
  cutoffAt: 1,
  requestedAt: 1,
  traceId: '',
});

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** A queue, the requests that it has set aside, and the lines that it logged as errors. */
function openQueue() {
  const lines: string[] = [];
  const aside = new Set<string>();
  const queue = createRequestQueue({
    batchRequestsMax: 1_000,
    isHealthy: async () => true,
    onFault: () => {},
    aside,
    logger: createLogger({ service: 'test', level: 'error' }, { write: (line: string) => lines.push(line) }),
  });
  return { queue, aside, lines };
}

it('a store that fails for a moment counts against no request, and sets none aside', async () => {
  const { queue, aside, lines } = openQueue();
  const request = createRequest();
  const failTwice = async () => {
    for (let times = 0; times < 2; times++) {
      expect(queue.take([request])).toEqual([request]);
      const fault = new StoreFault('ClickHouse network: ECONNREFUSED', { kind: 'passing', code: 'ECONNREFUSED' });
      await queue.attempt([request], () => Promise.reject(fault));
      expect(queue.take([request])).toEqual([]);
      vi.advanceTimersByTime(1_000);
    }
  };
  for (let outages = 0; outages < 5; outages++) {
    await failTwice();
    expect(await queue.attempt([request], async () => 'begun')).toBe('begun');
  }
  expect([aside.size, lines]).toEqual([0, []]);
});

it('a request that fails alone three times is set aside and retried after ten seconds, however large its batch was', async () => {
  const { queue, aside, lines } = openQueue();
  const requests = Array.from({ length: 100 }, createRequest);
  const hostile = requests[37]!;
  const left = new Set(requests);
  for (let attempts = 0; lines.length === 0 && attempts < 100; attempts++) {
    vi.advanceTimersByTime(1_000);
    const some = queue.take([...left]);
    const begun = await queue.attempt(some, async () => {
      if (some.includes(hostile)) throw new Error('cannot be resolved');
      return some;
    });
    for (const request of begun ?? []) left.delete(request);
  }
  expect(lines.map((line) => JSON.parse(line).retryMs)).toEqual([10_000]);
  expect([...aside]).toEqual([hostile.erasureId.toString('hex')]);
});
