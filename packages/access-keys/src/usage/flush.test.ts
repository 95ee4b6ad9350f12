import { until } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createMemoryKeyUsage } from '../test/memory-usage.ts';
import type { KeyUsage } from './key-usage.ts';
import { createUsageCounter, openUsageFlush } from './key-usage.ts';

const key = { keyId: 'k', environmentId: 'demo' };
const usesOf = async (usage: KeyUsage) => (await usage.readKeys(['k'])).get('k')!.usesOfHour;

describe('the usage flush', () => {
  it('writes each count to the store exactly once', async () => {
    const [counter, usage] = [createUsageCounter(), createMemoryKeyUsage()];
    const flush = openUsageFlush({ counter, usage, intervalMs: 20 });
    counter.used(key, 1, 0);
    await until('the first count is stored', async () => (await usesOf(usage)) === 1);
    counter.used(key, 1, 0);
    await until('the second count is stored', async () => (await usesOf(usage)) === 2);
    await flush.close();
    expect(await usesOf(usage)).toBe(2);
  });

  it('writes the remaining counts when it is closed', async () => {
    const [counter, usage] = [createUsageCounter(), createMemoryKeyUsage()];
    const flush = openUsageFlush({ counter, usage, intervalMs: 60_000 });
    counter.used(key, 1, 0);
    await flush.close();
    expect(await usesOf(usage)).toBe(1);
  });

  it('drops counts that the store rejects, reports their number, and continues', async () => {
    const [counter, usage] = [createUsageCounter(), createMemoryKeyUsage()];
    const lost: [number, unknown][] = [];
    const fault = new Error('Redis is unavailable');
    let isDown = true;
    const add: KeyUsage['add'] = (counts) => (isDown ? Promise.reject(fault) : usage.add(counts));
    const onLost = (requests: number, why: unknown) => void lost.push([requests, why]);
    const flush = openUsageFlush({ counter, usage: { add }, onLost, intervalMs: 20 });
    counter.used(key, 1, 0);
    counter.refused(key, { reason: 'VALIDATION_ERROR', traceId: 't' });
    await until('the loss is reported', () => lost.length === 1);
    expect(lost).toEqual([[2, fault]]);
    isDown = false;
    counter.used(key, 1, 0);
    await until('the next count is stored', async () => (await usesOf(usage)) === 1);
    await flush.close();
  });

  it('delays shutdown by at most a second', async () => {
    const counter = createUsageCounter();
    const flush = openUsageFlush({ counter, usage: { add: () => new Promise(() => {}) }, intervalMs: 60_000 });
    counter.used(key, 1, 0);
    const startedAt = performance.now();
    await flush.close();
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });
});
