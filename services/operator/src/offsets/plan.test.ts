import { type GroupPartition, isDecisionFor } from '@playline/stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planDecision } from './plan.ts';

const mark = { base: 70, epoch: 3, crc: 9 };
const shortened: GroupPartition = {
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

describe('a decision about a log that was replaced', () => {
  it('continues where the two logs diverge, and reads nothing twice and skips nothing', () => {
    const { decision, description: says, skipped: passesOver } = planDecision(shortened, 'earliest-unread', 1_000);
    expect(decision).toEqual({
      from: 50,
      answers: { committed: 80, mark },
      decidedAtMs: 1_000,
      replaced: [{ start: 50, end: 95 }],
    });
    expect(passesOver).toBe(0);
    expect(says.join(' ')).not.toContain('read again');
    expect(says.join(' ')).toContain('Rows at offsets 50 to 94');
  });

  it('continues at the first record when the point of divergence is unknown, and says what that means', () => {
    const { decision, description: says } = planDecision({ ...shortened, divergesAt: null }, 'earliest-unread', 1_000);
    expect(decision.from).toBe(10);
    expect(says.join(' ')).toContain('records may be read again');
  });

  it('says which records will never be read', () => {
    const { description: says, skipped: passesOver } = planDecision(shortened, 'end', 1_000);
    expect(passesOver).toBe(10);
    expect(says.join(' ')).toContain('Offsets 50 to 59 hold records that were not read');
  });

  it('keeps earlier decisions, and applies to this commit and no other', () => {
    const before = planDecision(shortened, 'earliest-unread', 1_000).decision;
    const { decision } = planDecision({ ...shortened, decision: before, readTo: 80 }, 'earliest-unread', 2_000);
    expect(decision.replaced).toEqual([
      { start: 50, end: 80 },
      { start: 50, end: 95 },
    ]);
    expect(isDecisionFor(decision, shortened)).toBe(true);
    expect(isDecisionFor(decision, { ...shortened, committed: 81 })).toBe(false);
    expect(isDecisionFor(decision, { ...shortened, mark: { ...mark, crc: 8 } })).toBe(false);
  });

  it('names the records that retention removed, which can no longer be read', () => {
    const expired = { ...shortened, committed: 5, readTo: 5, start: 10, end: 60, partsAt: null };
    const {
      decision,
      description: says,
      skipped: passesOver,
    } = planDecision({ ...expired, finding: { kind: 'expired', start: 10 } }, 'earliest-unread', 1_000);
    expect([decision.from, decision.replaced, passesOver]).toEqual([10, [], 0]);
    expect(says.join(' ')).toContain('Offsets 5 to 9 are gone');
  });

  it('says for every offset whether it is read, read again or skipped, and accepts none outside the log', () => {
    const property = fc.property(fc.nat(120), (from) => {
      if (from < 10 || from > 60) {
        expect(() => planDecision(shortened, from, 1)).toThrow(RangeError);
        return;
      }
      const { description: says, skipped: passesOver } = planDecision(shortened, from, 1);
      expect(passesOver).toBe(Math.max(0, from - 50));
      const again = /Offsets (\d+) to (\d+) are read again/.exec(says.join(' '));
      expect(again === null ? null : [Number(again[1]), Number(again[2])]).toEqual(from < 50 ? [from, 49] : null);
    });
    fc.assert(property);
  });
});
