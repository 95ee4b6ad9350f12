import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { isSameMark, isSuspect, type LogMark, MarkTrail } from './log-mark.ts';
import { compareWithLog, isDecisionFor, parseDecision, toDecisionMetadata } from './offset-decision.ts';

const whole = fc.nat({ max: 2 ** 40 });
const mark: fc.Arbitrary<LogMark> = fc.record({ base: whole, epoch: fc.nat(), crc: fc.nat({ max: 2 ** 32 - 1 }) });
const markOrNone = fc.option(mark);

it('commit metadata is parsed unchanged', () => {
  const intent = fc.record({
    end: fc.integer({ min: 1, max: 2 ** 40 }),
    namedAtMs: whole,
    transformVersion: fc.nat(),
    mark: markOrNone,
    firstTimestampMs: fc.option(whole),
    basis: fc.option(fc.string()),
  });
  const note = fc.record({
    intent: fc.option(intent),
    mark: markOrNone,
    decidedAtMs: fc.option(whole),
    isDecision: fc.boolean(),
    triedTo: fc.option(whole),
    carried: fc.option(fc.string()),
  });
  fc.assert(fc.property(note, (written) => void expect(parseMetadata(toMetadata(written), 0)).toEqual(written)));
  // An intent without offsets is ignored, because the block would be committed repeatedly.
  expect(parseMetadata('{"v":1,"e":9,"t":5,"s":2}', 9)).toEqual(NO_NOTE);
});

it('an offset decision fits into commit metadata, and is parsed unchanged', () => {
  const decision = fc.record({
    from: whole,
    forCommit: fc.record({ committed: whole, mark: markOrNone }),
    decidedAtMs: whole,
    replaced: fc.array(fc.record({ start: whole, end: whole }), { maxLength: 40 }),
  });
  fc.assert(
    fc.property(decision, (written) => {
      const metadata = toDecisionMetadata(written);
      expect(metadata.length).toBeLessThan(4_096);
      expect(parseDecision(written.from, metadata)).toEqual(written);
      expect(isDecisionFor(written, written.forCommit)).toBe(true);
      expect(isDecisionFor(written, { ...written.forCommit, committed: written.forCommit.committed + 1 })).toBe(false);
    }),
  );
  for (const metadata of [null, '', '{"v":2,"c":1,"t":1}', 'nonsense']) expect(parseDecision(3, metadata)).toBeNull();
});

/** A log of batches with some records each. */
const log = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 }).map((sizes) => {
  let base = 0;
  const marks = sizes.map((size, at) => {
    base += size;
    return { base: base - size, epoch: 1, crc: at };
  });
  return { marks, end: base };
});

it('a trail of batches has the batch before any offset that may be committed', () => {
  const property = fc.property(log, fc.array(fc.nat(), { maxLength: 5 }), ({ marks, end }, positions) => {
    const trail = new MarkTrail(null);
    // A fetch that begins within a batch returns the batch again.
    for (const [at, batch] of marks.entries()) trail.add(at === 0 ? [batch] : [marks[at - 1]!, batch]);
    for (const offset of positions.map((position) => 1 + (position % end)).sort((a, b) => a - b)) {
      expect(trail.before(offset)).toEqual(marks.findLast(({ base }) => base < offset));
      trail.forget(offset);
    }
  });
  fc.assert(property);
});

it('a log that only grew is found intact, and a log that lost read batches and grew again is not', () => {
  const property = fc.property(log, fc.nat(), fc.nat(), fc.nat({ max: 9 }), ({ marks, end }, read, cut, grown) => {
    const committed = 1 + (read % end);
    const mark = marks.findLast(({ base }) => base < committed)!;
    const compare = (now: readonly LogMark[], nowEnd: number) => {
      const found = mark.base < nowEnd ? (now.findLast(({ base }) => base <= mark.base) ?? null) : null;
      return compareWithLog({ committed, end: committed, mark }, { start: 0, end: nowEnd, found }).kind;
    };
    expect(compare(marks, end)).toBe('intact');
    // Logs are truncated between batches.
    const kept = marks.slice(0, cut % marks.length);
    const keptEnd = marks[kept.length]!.base;
    const later = Array.from({ length: grown }, (_, i) => ({ base: keptEnd + i, epoch: 2, crc: 100 + i }));
    const now = compare([...kept, ...later], keptEnd + grown);
    if (committed <= keptEnd) expect(now).toBe('intact');
    else expect(['shortened', 'exchanged']).toContain(now);
    const next = later.find(({ base }) => base >= committed);
    if (next !== undefined) expect(isSuspect(mark, next)).toBe(true);
  });
  fc.assert(property);
});

it('a comparison with a log proves nothing without a common batch, and detects deleted and lost records', () => {
  const found = { base: 12, epoch: 1, crc: 7 };
  const read = { committed: 30, end: 30, mark: { base: 10, epoch: 1, crc: 5 } };
  expect(compareWithLog(read, { start: 20, end: 40, found: null }).kind).toBe('unproven');
  expect(compareWithLog({ ...read, mark: null }, { start: 0, end: 40, found }).kind).toBe('unproven');
  expect(compareWithLog(read, { start: 0, end: 40, found }).kind).toBe('unproven');
  expect(compareWithLog(read, { start: 31, end: 40, found: null })).toEqual({ kind: 'expired', start: 31 });
  // The log ends within the named block, after its start.
  const named = { committed: 10, end: 30, mark: { base: 29, epoch: 1, crc: 5 } };
  expect(compareWithLog(named, { start: 0, end: 20, found: null })).toEqual({ kind: 'shortened', end: 20 });
});

it.each([
  ['the same batch', 'not suspect', {}],
  ['another batch at the same offset', 'suspect', { crc: 8 }],
  ['a batch that begins earlier', 'suspect', { base: 4 }],
  ['a later batch from the same leader', 'not suspect', { base: 6, crc: 8 }],
  ['a later batch from another leader', 'suspect', { base: 6, epoch: 2, crc: 8 }],
  ['the same bytes from another leader', 'suspect', { epoch: 2 }],
])('%s is %s after a batch that was read', (_, expected, change) => {
  const last = { base: 5, epoch: 1, crc: 7 };
  expect(isSuspect(last, { ...last, ...change })).toBe(expected === 'suspect');
  // The checksum does not cover the epoch.
  expect(isSameMark(last, { ...last, epoch: 2 })).toBe(false);
});
