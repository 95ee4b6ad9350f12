import type { BlockOrigin } from '@playline/stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { assignTimes, type LoggedRecord } from './timed-block.ts';

const NEW_BLOCK: BlockOrigin = { carried: null, basis: null };

/** Records whose broker times repeat or step forward or backward. */
const log: fc.Arbitrary<LoggedRecord[]> = fc
  .array(
    fc.record({
      records: fc.integer({ min: 1, max: 6 }),
      /** Offsets that transaction markers and aborted records occupy. */
      gap: fc.nat({ max: 3 }),
      stepMs: fc.integer({ min: -2_000, max: 2_000 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((batches) => {
    const found: LoggedRecord[] = [];
    let [offset, timestampMs] = [0, 1_700_000_000_000];
    for (const { records, gap, stepMs } of batches) {
      offset += gap;
      timestampMs += stepMs;
      for (let i = 0; i < records; i++) found.push({ offset: offset++, timestampMs });
    }
    return found;
  });

/** Where an owner stops: before or after committing the intent, after publishing the watermark, or at the end. */
type Stop = 'before-intent' | 'after-intent' | 'published' | 'completed';

interface Attempt {
  readonly records: number;
  readonly stop: Stop;
}

const attempt: fc.Arbitrary<Attempt> = fc.record({
  records: fc.integer({ min: 1, max: 9 }),
  stop: fc.constantFrom<Stop>('before-intent', 'after-intent', 'published', 'completed'),
});
const attempts = fc.array(attempt, { minLength: 1, maxLength: 25 });

class Partition {
  readonly timesByOffset = new Map<number, Set<number>>();
  watermark = 0;
  /** Number of blocks whose first time was at or below the watermark when their intent was committed. */
  belowWatermark = 0;
  #at = 0;
  #carried: string | null = null;
  #intent: { basis: string; records: number } | null = null;
  readonly #log: readonly LoggedRecord[];

  constructor(records: readonly LoggedRecord[]) {
    this.#log = records;
  }

  get isDone(): boolean {
    return this.#at >= this.#log.length;
  }

  process({ records, stop }: Attempt): void {
    const block = this.#log.slice(this.#at, this.#at + (this.#intent?.records ?? records));
    const origin = { carried: this.#carried, basis: this.#intent?.basis ?? null };
    const { times, end, trace } = assignTimes(block, origin, this.watermark);
    if (stop === 'before-intent') return;
    if (this.#intent === null && (times[0] ?? end) <= this.watermark) this.belowWatermark++;
    this.#intent = { basis: trace.basis, records: block.length };
    for (const [index, { offset }] of block.entries())
      this.timesByOffset.set(offset, (this.timesByOffset.get(offset) ?? new Set()).add(times[index]!));
    if (stop === 'after-intent') return;
    this.watermark = Math.max(this.watermark, end);
    if (stop === 'published') return;
    this.#at += block.length;
    this.#carried = trace.carries;
    this.#intent = null;
  }
}

function run(records: readonly LoggedRecord[], sequence: readonly Attempt[]): Partition {
  const partition = new Partition(records);
  for (const attempt of sequence) if (!partition.isDone) partition.process(attempt);
  while (!partition.isDone) partition.process({ records: 4, stop: 'completed' });
  return partition;
}

it('updated_at increases in log order and stays above each watermark for all block sizes and owner changes', () => {
  const property = fc.property(log, attempts, (records, sequence) => {
    const partition = run(records, sequence);
    expect([...partition.timesByOffset.values()].map(({ size }) => size)).toEqual(records.map(() => 1));
    const times = records.map(({ offset }) => [...partition.timesByOffset.get(offset)!][0]!);
    expect(times).toEqual(assignTimes(records, NEW_BLOCK, 0).times);
    for (const [index, time] of times.entries()) {
      expect(time).toBeGreaterThanOrEqual(records[index]!.timestampMs * 1_000);
      if (index > 0) expect(time).toBeGreaterThan(times[index - 1]!);
    }
    expect(partition.belowWatermark).toBe(0);
    expect(partition.watermark).toBe(times.at(-1));
  });
  fc.assert(property, { numRuns: 200 });
});

it('updated_at is the log time, but at least a microsecond above the previous record', () => {
  const records = [5, 5, 5, 4, 6].map((timestampMs, offset) => ({ offset, timestampMs }));
  expect(assignTimes(records, NEW_BLOCK, 0).times).toEqual([5_000, 5_001, 5_002, 5_003, 6_000]);
  expect(assignTimes(records, { carried: '5001', basis: null }, 5_500).times).toEqual([
    5_501, 5_502, 5_503, 5_504, 6_000,
  ]);
});

it('updated_at in a recovered block that lost records is stable and above the times of all earlier attempts', () => {
  const mask = fc.array(fc.boolean());
  const property = fc.property(log, mask, mask, fc.nat({ max: 10_000 }), (records, first, second, watermark) => {
    const before = assignTimes(records, NEW_BLOCK, watermark);
    const origin = { carried: null, basis: before.trace.basis };
    const kept = records.filter((_, index) => first[index] ?? false);
    const remaining = kept.filter((_, index) => second[index] ?? false);
    if (kept.length === records.length) return;
    const after = assignTimes(kept, origin, watermark + 5_000_000);
    for (const [index, time] of after.times.entries()) {
      expect(time).toBeGreaterThan(before.end);
      if (index > 0) expect(time).toBeGreaterThan(after.times[index - 1]!);
    }
    expect(after.trace.basis).toBe(before.trace.basis);
    expect(after.end).toBeGreaterThanOrEqual(before.end);
    const repeated = assignTimes(remaining, origin, 0);
    const timeOf = new Map(kept.map(({ offset }, index) => [offset, after.times[index]!]));
    expect(repeated.times).toEqual(remaining.map(({ offset }) => timeOf.get(offset)));
  });
  fc.assert(property, { numRuns: 200 });
});

it('updated_at is not assigned if a commit contains values that this release cannot parse', () => {
  for (const basis of ['', '[1,2]', '[1,2,3,4,-5]', '{}', '[1,2,3,4,1e300]'])
    expect(() => assignTimes([], { carried: null, basis }, 0)).toThrow('another release');
  expect(() => assignTimes([], { carried: 'x', basis: null }, 0)).toThrow('another release');
});
