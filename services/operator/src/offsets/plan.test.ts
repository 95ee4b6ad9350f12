import { type GroupPartition, isDecisionFor } from '@playline/stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { planDecision } from './plan.ts';

const mark = { base: 70, epoch: 3, crc: 9 };
const truncated: GroupPartition = {
  topic: 'messages',
  partition: 2,
  committed: 80,
  readTo: 95,
  mark,
  start: 10,
  end: 60,
  finding: { kind: 'shortened', end: 60 },
  divergesAt: 50,
  decision: null,
};

it('the plan for a replaced log resumes where the two logs diverge, without repeating or skipping records', () => {
  const { decision, description, skipped } = planDecision(truncated, 'earliest-unread', 1_000);
  expect(decision).toEqual({
    from: 50,
    forCommit: { committed: 80, mark },
    decidedAtMs: 1_000,
    replaced: [{ start: 50, end: 95 }],
  });
  expect(skipped).toBe(0);
  expect(description.join(' ')).not.toContain('read again');
  expect(description.join(' ')).toContain('Rows at offsets 50 to 94');
});

it('the plan for a replaced log resumes at the start of the log if the point of divergence is unknown', () => {
  const { decision, description } = planDecision({ ...truncated, divergesAt: null }, 'earliest-unread', 1_000);
  expect(decision.from).toBe(10);
  expect(description.join(' ')).toContain('records may be read again');
});

it('the plan for a replaced log reports the offsets that will never be read', () => {
  const { description, skipped } = planDecision(truncated, 'end', 1_000);
  expect(skipped).toBe(10);
  expect(description.join(' ')).toContain('Offsets 50 to 59 contain unread records');
});

it('a decision about a replaced log includes earlier replaced ranges, and applies only to one committed offset', () => {
  const before = planDecision(truncated, 'earliest-unread', 1_000).decision;
  const { decision } = planDecision({ ...truncated, decision: before, readTo: 80 }, 'earliest-unread', 2_000);
  expect(decision.replaced).toEqual([
    { start: 50, end: 80 },
    { start: 50, end: 95 },
  ]);
  expect(isDecisionFor(decision, truncated)).toBe(true);
  expect(isDecisionFor(decision, { ...truncated, committed: 81 })).toBe(false);
  expect(isDecisionFor(decision, { ...truncated, mark: { ...mark, crc: 8 } })).toBe(false);
});

it('the plan for an expired log reports the offsets that retention deleted before they were read', () => {
  const expired = { ...truncated, committed: 5, readTo: 5, start: 10, end: 60, divergesAt: null };
  const { decision, description, skipped } = planDecision(
    { ...expired, finding: { kind: 'expired', start: 10 } },
    'earliest-unread',
    1_000,
  );
  expect([decision.from, decision.replaced, skipped]).toEqual([10, [], 0]);
  expect(description.join(' ')).toContain('Offsets 5 to 9 are lost');
});

it('planDecision reports repeated and skipped offsets of a replaced log, and refuses offsets outside the log', () => {
  const property = fc.property(fc.nat(120), (from) => {
    if (from < 10 || from > 60) {
      expect(() => planDecision(truncated, from, 1)).toThrow(RangeError);
      return;
    }
    const { description, skipped } = planDecision(truncated, from, 1);
    expect(skipped).toBe(Math.max(0, from - 50));
    const match = /Offsets (\d+) to (\d+) are read again/.exec(description.join(' '));
    expect(match === null ? null : [Number(match[1]), Number(match[2])]).toEqual(from < 50 ? [from, 49] : null);
  });
  fc.assert(property);
});
