import { afterAll, beforeAll, expect, it } from 'vitest';
import { openTestReads, type TestReads, toSqlTime } from '../test/test-reads.ts';
import { NO_COUNTS } from './index.ts';

// Recent, because minutes of all environments are combined after a day.
const NOW_MS = Math.floor(Date.now() / 60_000) * 60_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const toSeconds = (ms: number) => toSqlTime(ms).slice(0, 19);

let reads: TestReads;
beforeAll(async () => {
  reads = await openTestReads();
});
afterAll(() => reads.close());

const toCount = (environmentId: string, agoMs: number, messages: number, changes: object = {}) => ({
  environment_id: environmentId,
  step_s: 60,
  start_at: toSeconds(NOW_MS - agoMs),
  kind: 'client',
  library: 'unity',
  messages,
  counted_at: toSqlTime(NOW_MS),
  ...changes,
});
const toDelay = (agoMs: number, delayMs: number, messages: number) => ({
  environment_id: 'counted',
  step_s: 60,
  start_at: toSeconds(NOW_MS - agoMs),
  delay_ms: delayMs,
  messages,
});
const toMint = (status: string, requestedAgoMs: number, attempt: string, changedAgoMs = requestedAgoMs) => ({
  environment_id: 'counted',
  chain: 'main',
  contract: 'c'.repeat(20),
  requested_at: toSqlTime(NOW_MS - requestedAgoMs),
  changed_at: toSqlTime(NOW_MS - changedAgoMs),
  attempt_id: attempt.repeat(16),
  status,
});

it('alertCounts counts each part in its time range, for each requested environment', async () => {
  const day = 24 * HOUR_MS;
  await reads.insert('event_counts', [
    // The ranges include their start and exclude their end.
    ...[15, 1, 0, 16].map((minutes) => toCount('counted', day + minutes * MINUTE_MS, minutes + 1)),
    ...[76, 75, 16, 15].map((minutes) => toCount('counted', minutes * MINUTE_MS, minutes)),
    ...[49, 30, 23].map((hours) => toCount('counted', hours * HOUR_MS + 30 * MINUTE_MS, hours, { step_s: 3600 })),
    toCount('counted', day + MINUTE_MS, 1_000, { kind: 'event', name: 'jump' }),
    toCount('also counted', 16 * MINUTE_MS, 7),
    toCount('not requested', 16 * MINUTE_MS, 7),
  ]);
  await reads.insert('event_delays', [
    toDelay(16 * MINUTE_MS, 900_000, 50),
    toDelay(15 * MINUTE_MS, 1_000, 990),
    toDelay(5 * MINUTE_MS, 200_000, 20),
    // Imported messages have no delay.
    toDelay(6 * MINUTE_MS, 0, 5_000),
  ]);
  const toStored = (agoMs: number, stored: number, environmentId = 'counted') => ({
    minute_at: toSeconds(NOW_MS - agoMs),
    environment_id: environmentId,
    stored,
  });
  await reads.insert('counted_minutes', [
    toStored(16 * MINUTE_MS, 50),
    toStored(15 * MINUTE_MS, 990),
    toStored(6 * MINUTE_MS, 5_000),
    toStored(5 * MINUTE_MS, 20),
    toStored(10 * MINUTE_MS, 7, ''),
  ]);
  await reads.insert('mint_requests', [
    toMint('pending', 31 * MINUTE_MS, 'a'),
    toMint('pending', 29 * MINUTE_MS, 'b'),
    toMint('pending', 8 * day, 'c'),
    toMint('failed', 2 * HOUR_MS, 'd', 50 * MINUTE_MS),
    toMint('failed', 2 * HOUR_MS, 'e'),
    toMint('succeeded', 40 * MINUTE_MS, 'f'),
  ]);
  const environmentIds = ['counted', 'also counted', 'without messages'];
  const counts = await reads.reads.alertCounts({ environmentIds, nowS: NOW_MS / 1000 });
  expect(Object.fromEntries(counts)).toEqual({
    counted: {
      'same minutes of yesterday': 16 + 2,
      'day before': 30,
      'hour before': 75 + 16,
      stored: 990 + 5_000,
      'delay in ms': 200_000,
      'pending mints': 1,
      'failed mints': 1,
    },
    'also counted': { ...NO_COUNTS, 'hour before': 7 },
  });
});
