import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { isSameMark, isSuspect, type LogMark, MarkTrail } from './log-mark.ts';
import { compareWithLog, isDecisionFor, parseDecision, toDecisionMetadata } from './offset-decision.ts';

const integer = fc.nat({ max: 2 ** 40 });
const mark: fc.Arbitrary<LogMark> = fc.record({ base: integer, epoch: fc.nat(), crc: fc.nat({ max: 2 ** 32 - 1 }) });
const markOrNone = fc.option(mark);

it('commit metadata is parsed to the same values that were encoded', () => {
  const intent = fc.record({
    end: fc.integer({ min: 1, max: 2 ** 40 }),
    intentAtMs: integer,
    transformVersion: fc.nat(),
    mark: markOrNone,
    firstTimestampMs: fc.option(integer),
    basis: fc.option(fc.string()),
  });
  const note = fc.record({
    intent: fc.option(intent),
    mark: markOrNone,
    decidedAtMs: fc.option(integer),
    isDecision: fc.boolean(),
    triedTo: fc.option(integer),
    carried: fc.option(fc.string()),
  });
  fc.assert(fc.property(note, (written) => void expect(parseMetadata(toMetadata(written), 0)).toEqual(written)));
  // An intent without offsets is ignored, because its block would be committed forever.
  expect(parseMetadata('{"v":1,"e":9,"t":5,"s":2}', 9)).toEqual(NO_NOTE);
});

it('an offset decision fits into commit metadata and is parsed to the same values', () => {
  const decision = fc.record({
    from: integer,
    forCommit: fc.record({ committed: integer, mark: markOrNone }),
    decidedAtMs: integer,
    replaced: fc.array(fc.record({ start: integer, end: integer }), { maxLength: 40 }),
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

const log = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 12 }).map((sizes) => {
  let base = 0;
  const marks = sizes.map((size, at) => {
    base += size;
    return { base: base - size, epoch: 1, crc: at };
  });
  return { marks, end: base };
});

it('a trail of batches contains the batch before every offset that may be committed', () => {
  const property = fc.property(log, fc.array(fc.nat(), { maxLength: 5 }), ({ marks, end }, positions) => {
    const trail = new MarkTrail(null);
    // A fetch that starts within a batch returns the whole batch again.
    for (const [at, batch] of marks.entries()) trail.add(at === 0 ? [batch] : [marks[at - 1]!, batch]);
    for (const offset of positions.map((position) => 1 + (position % end)).sort((a, b) => a - b)) {
      expect(trail.before(offset)).toEqual(marks.findLast(({ base }) => base < offset));
      trail.forget(offset);
    }
  });
  fc.assert(property);
});

it('a log that only grew is intact, and a log that lost batches that were read and grew again is not', () => {
  const property = fc.property(log, fc.nat(), fc.nat(), fc.nat({ max: 9 }), ({ marks, end }, read, cut, grown) => {
    const committed = 1 + (read % end);
    const mark = marks.findLast(({ base }) => base < committed)!;
    const compare = (now: readonly LogMark[], nowEnd: number) => {
      const found = mark.base < nowEnd ? (now.findLast(({ base }) => base <= mark.base) ?? null) : null;
      return compareWithLog({ committed, end: committed, mark }, { start: 0, end: nowEnd, found }).kind;
    };
    expect(compare(marks, end)).toBe('intact');
    const retained = marks.slice(0, cut % marks.length);
    const keptEnd = marks[retained.length]!.base;
    const later = Array.from({ length: grown }, (_, i) => ({ base: keptEnd + i, epoch: 2, crc: 100 + i }));
    const now = compare([...retained, ...later], keptEnd + grown);
    if (committed <= keptEnd) expect(now).toBe('intact');
    else expect(['shortened', 'exchanged']).toContain(now);
    const next = later.find(({ base }) => base >= committed);
    if (next !== undefined) expect(isSuspect(mark, next)).toBe(true);
  });
  fc.assert(property);
});

it('a comparison without a common batch proves nothing, and deleted or lost records are detected', () => {
  const found = { base: 12, epoch: 1, crc: 7 };
  const read = { committed: 30, end: 30, mark: { base: 10, epoch: 1, crc: 5 } };
  expect(compareWithLog(read, { start: 20, end: 40, found: null }).kind).toBe('unproven');
  expect(compareWithLog({ ...read, mark: null }, { start: 0, end: 40, found }).kind).toBe('unproven');
  expect(compareWithLog(read, { start: 0, end: 40, found }).kind).toBe('unproven');
  expect(compareWithLog(read, { start: 31, end: 40, found: null })).toEqual({ kind: 'expired', start: 31 });
  const withIntent = { committed: 10, end: 30, mark: { base: 29, epoch: 1, crc: 5 } };
  expect(compareWithLog(withIntent, { start: 0, end: 20, found: null })).toEqual({ kind: 'shortened', end: 20 });
});

it.each([
  ['the same batch', 'not suspect', {}],
  ['a different batch at the same offset', 'suspect', { crc: 8 }],
  ['a batch that starts earlier', 'suspect', { base: 4 }],
  ['a later batch from the same leader', 'not suspect', { base: 6, crc: 8 }],
  ['a later batch from a different leader', 'suspect', { base: 6, epoch: 2, crc: 8 }],
  ['the same bytes from a different leader', 'suspect', { epoch: 2 }],
])('isSuspect classifies %s as %s after a batch that was read', (_, expected, change) => {
  const last = { base: 5, epoch: 1, crc: 7 };
  expect(isSuspect(last, { ...last, ...change })).toBe(expected === 'suspect');
  // The checksum does not cover the epoch.
  expect(isSameMark(last, { ...last, epoch: 2 })).toBe(false);
});
