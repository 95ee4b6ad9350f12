import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { isSameMark, isSuspect, type LogMark, MarkTrail } from './log-mark.ts';
import { compareWithLog, isDecisionFor, parseDecision, toDecisionMetadata } from './offset-decision.ts';

const whole = fc.nat({ max: 2 ** 40 });
const mark: fc.Arbitrary<LogMark> = fc.record({ base: whole, epoch: fc.nat(), crc: fc.nat({ max: 2 ** 32 - 1 }) });
const markOrNone = fc.option(mark);

describe('what is committed beside an offset', () => {
  it('is read as it was written', () => {
    const note = fc.record({
      intent: fc.option(
        fc.record({
          end: fc.integer({ min: 1, max: 2 ** 40 }),
          namedAtMs: whole,
          transformVersion: fc.nat(),
          mark: markOrNone,
          firstTimestampMs: fc.option(whole),
          basis: fc.option(fc.string()),
        }),
      ),
      mark: markOrNone,
      decidedAtMs: fc.option(whole),
      isDecision: fc.boolean(),
      triedTo: fc.option(whole),
      carried: fc.option(fc.string()),
    });
    const property = fc.property(note, (written) => {
      expect(parseMetadata(toMetadata(written), 0)).toEqual(written);
    });
    fc.assert(property);
  });

  it('names no block that ends where it begins: cut there, it would be committed again and again', () => {
    expect(parseMetadata('{"v":1,"e":9,"t":5,"s":2}', 9)).toEqual(NO_NOTE);
  });

  it('fits with what brokers keep, and a decision is read as it was made', () => {
    const range = fc.record({ start: whole, end: whole });
    const decision = fc.record({
      from: whole,
      forCommit: fc.record({ committed: whole, mark: markOrNone }),
      decidedAtMs: whole,
      replaced: fc.array(range, { maxLength: 40 }),
    });
    fc.assert(
      fc.property(decision, (made) => {
        const metadata = toDecisionMetadata(made);
        expect(metadata.length).toBeLessThan(4_096);
        expect(parseDecision(made.from, metadata)).toEqual(made);
        expect(isDecisionFor(made, made.forCommit)).toBe(true);
        expect(isDecisionFor(made, { ...made.forCommit, committed: made.forCommit.committed + 1 })).toBe(false);
      }),
    );
    for (const metadata of [null, '', '{"v":2,"c":1,"t":1}', 'nonsense']) expect(parseDecision(3, metadata)).toBeNull();
  });
});

/** A log of batches, some records each. */
const log = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 }).map((sizes) => {
  let base = 0;
  const marks = sizes.map((size, at) => {
    base += size;
    return { base: base - size, epoch: 1, crc: at };
  });
  return { marks, end: base };
});

describe('the batches that were read', () => {
  it('name the one in front of any offset that is still to be committed, whatever was committed before', () => {
    const property = fc.property(log, fc.array(fc.nat(), { maxLength: 5 }), ({ marks, end }, places) => {
      const trail = new MarkTrail(null);
      // A fetch that begins within a batch brings it again.
      for (const [at, batch] of marks.entries()) trail.add(at === 0 ? [batch] : [marks[at - 1]!, batch]);
      for (const offset of places.map((place) => 1 + (place % end)).sort((a, b) => a - b)) {
        expect(trail.before(offset)).toEqual(marks.findLast(({ base }) => base < offset));
        trail.forget(offset);
      }
    });
    fc.assert(property);
  });

  it('are found intact in a log that only grew, and never in one that lost them and grew again', () => {
    const property = fc.property(log, fc.nat(), fc.nat(), fc.nat({ max: 9 }), ({ marks, end }, read, cut, grown) => {
      const committed = 1 + (read % end);
      const mark = marks.findLast(({ base }) => base < committed)!;
      const judge = (now: readonly LogMark[], nowEnd: number) => {
        const found = mark.base < nowEnd ? (now.findLast(({ base }) => base <= mark.base) ?? null) : null;
        return compareWithLog({ committed, end: committed, mark }, { start: 0, end: nowEnd, found }).kind;
      };
      expect(judge(marks, end)).toBe('intact');
      // Logs are cut between batches.
      const kept = marks.slice(0, cut % marks.length);
      const keptEnd = marks[kept.length]!.base;
      const later = Array.from({ length: grown }, (_, i) => ({ base: keptEnd + i, epoch: 2, crc: 100 + i }));
      const now = judge([...kept, ...later], keptEnd + grown);
      if (committed <= keptEnd) expect(now).toBe('intact');
      else expect(['shortened', 'exchanged']).toContain(now);
      // What comes next is looked at again unless it is behind the very batch that was read.
      const next = later.find(({ base }) => base >= committed);
      if (next !== undefined) expect(isSuspect(mark, next)).toBe(true);
    });
    fc.assert(property);
  });

  it('that retention took, or that no commit names, prove nothing', () => {
    const found = { base: 12, epoch: 1, crc: 7 };
    const read = { committed: 30, end: 30, mark: { base: 10, epoch: 1, crc: 5 } };
    expect(compareWithLog(read, { start: 20, end: 40, found: null }).kind).toBe('unproven');
    expect(compareWithLog({ ...read, mark: null }, { start: 0, end: 40, found }).kind).toBe('unproven');
    expect(compareWithLog(read, { start: 0, end: 40, found }).kind).toBe('unproven');
    expect(compareWithLog(read, { start: 31, end: 40, found: null })).toEqual({ kind: 'expired', start: 31 });
  });
});

it('tells a batch that another leader appended from the same bytes of the one before: its checksum leaves the epoch out', () => {
  const one = { base: 5, epoch: 1, crc: 7 };
  expect(isSameMark(one, { ...one })).toBe(true);
  expect(isSameMark(one, { ...one, epoch: 2 })).toBe(false);
  expect(isSameMark(one, { ...one, base: 6 })).toBe(false);
});

it('finds a log shortened that ends within the block under way, although its start is committed', () => {
  const read = { committed: 10, end: 30, mark: { base: 29, epoch: 1, crc: 5 } };
  expect(compareWithLog(read, { start: 0, end: 20, found: null })).toEqual({ kind: 'shortened', end: 20 });
});

it('suspects another batch at a place that was read, whatever its epoch, and not the batch itself', () => {
  const last = { base: 5, epoch: 1, crc: 7 };
  expect(isSuspect(last, { ...last })).toBe(false);
  expect(isSuspect(last, { ...last, crc: 8 })).toBe(true);
  expect(isSuspect(last, { base: 4, epoch: 1, crc: 7 })).toBe(true);
  expect(isSuspect(last, { base: 6, epoch: 1, crc: 8 })).toBe(false);
  expect(isSuspect(last, { base: 6, epoch: 2, crc: 8 })).toBe(true);
});
