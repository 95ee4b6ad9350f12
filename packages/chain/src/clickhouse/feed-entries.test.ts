import { StoreFault } from '@playline/stores';
import { expect, it } from 'vitest';
import { START_GAP } from '../cursor.ts';
import type { PageQuery } from '../store.ts';
import { NO_FILTERS } from '../store.ts';
import { activityRow, NOON_US } from '../test/rows.ts';
import { toShownActivity } from '../wire.ts';
import { createReadEntries } from './feed-entries.ts';
import type { Answer, QuerySettings } from './query-client.ts';

const HOUR_US = 3_600_000_000;
const query: PageQuery = {
  chain: 'main',
  filters: NO_FILTERS,
  gap: START_GAP,
  direction: 'next',
  limit: 10,
  horizon: NOON_US + HOUR_US,
};
const LIMIT = 4;

/** A version in the format of ClickHouse's answer. */
function toBytes(updatedAt: number): Buffer {
  const { id, members } = toShownActivity(activityRow({ updatedAt }));
  const head = Buffer.alloc(8);
  head.writeBigInt64LE(BigInt(updatedAt));
  const length = Buffer.from([(members.length & 127) | 128, members.length >> 7]);
  return Buffer.concat([
    Buffer.from([0]),
    head,
    Buffer.from([id.length]),
    Buffer.from(id),
    Buffer.from([2, 0, 0]),
    length,
    members,
  ]);
}

/** A simulated store with versions at these times. Records the requested windows. */
function createEngine(times: readonly number[]) {
  const requested: { least: number; end: number; settings: QuerySettings }[] = [];
  const toUs = (text: string) => Math.round(Number(text) * 1_000_000);
  const query = async (statement: string, _params: unknown, settings: QuerySettings): Promise<Answer> => {
    const [least, end] = [/updated_at >= '([\d.]+)'/, /updated_at < '([\d.]+)'/].map((bound) =>
      toUs(bound.exec(statement)?.[1] ?? String(Number.MAX_SAFE_INTEGER / 1e6)),
    ) as [number, number];
    requested.push({ least, end, settings });
    if (settings.max_rows_to_read !== undefined)
      throw new StoreFault('too many', { kind: 'passing', code: 'TOO_MANY_ROWS' });
    const found = times.filter((us) => us >= least && us < end);
    const isName = statement.includes('LIMIT 1 ');
    const bytes = found.slice(0, isName ? 1 : LIMIT).map((us) => (isName ? toBytes(us).subarray(1, 9) : toBytes(us)));
    return { bytes: Buffer.concat(bytes), readRows: 5_000 };
  };
  return { requested, read: createReadEntries({ query }) };
}

it('the first window of a feed is as wide as its last page', async () => {
  const times = Array.from({ length: 100 }, (_, index) => NOON_US - HOUR_US + index * 1_000_000);
  const { requested, read } = createEngine(times);
  const { entries } = await read(query, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested).toMatchObject([{ least: 0, end: query.horizon }]);
  const again = await read(query, LIMIT);
  expect(again.entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested[1]!.least).toBe(times[0]);
  expect(requested[1]!.end - requested[1]!.least).toBeLessThan(10_000_000);
  expect(requested).toHaveLength(2);
});

it('entries of a feed are found after a pause longer than any window', async () => {
  const times = [0, 1, 2, 3, 3_000_000_000].map((later) => NOON_US - HOUR_US + later);
  const { read } = createEngine(times);
  await read(query, LIMIT);
  const gap = { ...START_GAP, updatedAt: times[3]! + 1 } as const;
  const { entries, isFull } = await read({ ...query, gap }, LIMIT);
  expect([entries.map(({ updatedAt }) => updatedAt), isFull]).toEqual([[times[4]], false]);
});

it('a range is read when no window is below its row limit, as with hundreds of parts', async () => {
  const times = [1, 2, 3].map((later) => NOON_US + later);
  const { requested, read } = createEngine(times);
  const filters = { ...NO_FILTERS, toIndexedAt: NOON_US };
  const gap = { ...START_GAP, updatedAt: NOON_US } as const;
  const { entries } = await read({ ...query, filters, gap, horizon: NOON_US + 2_000_000 }, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times);
  expect(requested.length).toBeLessThan(20);
});
