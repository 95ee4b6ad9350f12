import { openMemoryPeople } from '@playline/people/memory';
import { createLogger } from '@playline/runtime';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startHoldSweep } from './audience-routes.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const logger = createLogger({ service: 'gateway', level: 'error' }, { write: () => {} });
const key = Buffer.alloc(16, 1);

it('the hold sweep drops an unconfirmed hold within 75 s of its request, even after failed sweeps', async () => {
  const { guards, holdOf } = openMemoryPeople();
  let failures = 3;
  const dropLapsed = async (nowMs: number) => {
    if (failures-- > 0) throw new Error('ECONNREFUSED');
    return await guards.dropLapsedHolds(nowMs);
  };
  const sweep = startHoldSweep({ dropLapsedHolds: dropLapsed }, logger);
  const hold = { environmentId: 'demo-test', erasureId: Buffer.alloc(16), keys: [key], cutoffMs: 1 };
  await guards.putHold({ ...hold, lapsesAtMs: Date.now() + 60_000 });
  await vi.advanceTimersByTimeAsync(59_999);
  expect(holdOf('demo-test', key)).toBe(1);
  await vi.advanceTimersByTimeAsync(15_001);
  expect(holdOf('demo-test', key)).toBeNull();
  await sweep.close();
});

it('the hold sweep stops when it is closed', async () => {
  let sweeps = 0;
  const sweep = startHoldSweep({ dropLapsedHolds: async () => sweeps++ }, logger);
  await sweep.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sweeps).toBe(0);
});
