import fc from 'fast-check';
import { expect, it } from 'vitest';
import { paceOf, toDurationText, toPaceText } from './read-progress.ts';

const sampleAt = (seconds: number, block: number) => ({ atMs: seconds * 1000, block });
const WINDOW = { windowMs: 60_000 };

it('paceOf measures the pace over the last window only', () => {
  const samples = [sampleAt(0, 0), sampleAt(100, 10), sampleAt(110, 110), sampleAt(160, 610)];
  expect(paceOf(samples, { ...WINDOW, to: 1_210 })).toEqual({ blocksPerSecond: 10, remainingMs: 60_000 });
});

it('paceOf returns null for a single sample and for samples without progress', () => {
  const unknown = { blocksPerSecond: null, remainingMs: null };
  expect(paceOf([], { ...WINDOW, to: 9 })).toEqual(unknown);
  expect(paceOf([sampleAt(1, 5)], { ...WINDOW, to: 9 })).toEqual(unknown);
  expect(paceOf([sampleAt(1, 5), sampleAt(9, 5)], { ...WINDOW, to: 9 })).toEqual(unknown);
});

it('paceOf estimates the remaining time, which is never negative', () => {
  const steps = fc.array(fc.record({ ms: fc.nat(5_000), blocks: fc.nat(500) }), { minLength: 1, maxLength: 50 });
  const property = fc.property(steps, fc.nat(100_000), (intervals, to) => {
    const samples = [{ atMs: 0, block: 0 }];
    for (const { ms, blocks } of intervals) {
      const before = samples.at(-1)!;
      samples.push({ atMs: before.atMs + ms, block: before.block + blocks });
    }
    const { blocksPerSecond, remainingMs } = paceOf(samples, { ...WINDOW, to });
    if (blocksPerSecond === null || remainingMs === null) return;
    expect(blocksPerSecond).toBeGreaterThan(0);
    expect((remainingMs / 1000) * blocksPerSecond).toBeCloseTo(Math.max(0, to - samples.at(-1)!.block), 3);
  });
  fc.assert(property);
});

it('toPaceText formats the pace, the remaining time and the expected end', () => {
  const noon = Date.UTC(2026, 10, 24, 12);
  const args = (blocksPerSecond: number, minutes: number) =>
    toPaceText({ blocksPerSecond, remainingMs: minutes * 60_000 }, noon);
  expect(args(123.4, 3)).toBe('123 blocks/s, about 3 min left (until 12:03 UTC)');
  expect(args(0.123, 90)).toBe('0.12 blocks/s, about 1 h 30 min left (until 13:30 UTC)');
  expect(args(2, 4 * 1440)).toBe('2 blocks/s, about 4 days left (until 2026-11-28 12:00 UTC)');
  expect(toDurationText(200)).toBe('1 s');
  expect(toPaceText({ blocksPerSecond: null, remainingMs: null }, noon)).toBe('');
});
