import { randomBytes } from 'node:crypto';
import type { ErasureRequest } from '@playline/erasure';
import { createLogger } from '@playline/runtime';
import { expect, it } from 'vitest';
import { createRequestQueue } from './request-queue.ts';

const createRequest = (): ErasureRequest => ({
  ...{ erasureId: randomBytes(16), environmentId: 'env', subjectKeys: [randomBytes(16)], memberKeys: [] },
  ...{ cutoffAt: 1, requestedAt: 1, traceId: '' },
});

it('a request that fails alone for the first time is retried after ten seconds, however large its batch was', async () => {
  const lines: string[] = [];
  const queue = createRequestQueue({
    ...{ batchRequestsMax: 1_000, isHealthy: async () => true, onFault: () => {}, aside: new Set<string>() },
    logger: createLogger({ service: 'test', level: 'error' }, { write: (line: string) => lines.push(line) }),
  });
  const requests = Array.from({ length: 100 }, createRequest);
  const hostile = requests[37]!;
  const left = new Set(requests);
  for (let attempts = 0; lines.length === 0 && attempts < 100; attempts++) {
    const some = queue.take([...left]);
    const begun = await queue.attempt(some, async () => {
      if (some.includes(hostile)) throw new Error('cannot be resolved');
      return some;
    });
    for (const request of begun ?? []) left.delete(request);
  }
  expect(lines.map((line) => JSON.parse(line).retryMs)).toEqual([10_000]);
});
