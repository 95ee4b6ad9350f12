import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLedger, createRun, messageIdPrefix, OUTCOMES, type Outcome, toMessageId } from './run.ts';

describe('createLedger', () => {
  it('keeps the last outcome of every message, like a plain map', () => {
    const outcomes = fc.array(fc.tuple(fc.nat(999), fc.constantFrom<Outcome>(...OUTCOMES)), { maxLength: 200 });
    fc.assert(
      fc.property(outcomes, (changes) => {
        const ledger = createLedger();
        for (let taken = 0; taken < 1000; taken++) expect(ledger.take()).toBe(taken);
        const plain = new Map<number, Outcome>(changes);
        for (const [sequence, outcome] of changes) ledger.set(sequence, outcome);
        for (const [sequence, outcome] of plain) expect(ledger.outcomeOf(sequence)).toBe(outcome);
        const accepted = [...plain.values()].filter((outcome) => outcome === 'accepted').length;
        expect(ledger.count('accepted')).toBe(accepted);
      }),
    );
  });

  it('keeps its contents when it grows', () => {
    const ledger = createLedger();
    ledger.set(ledger.take(), 'accepted');
    while (ledger.taken < 200_000) ledger.take();
    ledger.set(199_999, 'unknown');
    expect([ledger.outcomeOf(0), ledger.outcomeOf(1), ledger.outcomeOf(199_999)]).toEqual([
      'accepted',
      'unsent',
      'unknown',
    ]);
  });

  it('refuses a message whose sequence number was never taken', () => {
    expect(() => createLedger().set(0, 'accepted')).toThrow(RangeError);
  });
});

describe('toMessageId', () => {
  it('gives every message of a run its own UUID with the prefix of the run', () => {
    const run = createRun(1, 0);
    const ids = new Set(Array.from({ length: 10_000 }, (_, sequence) => toMessageId(run, sequence)));
    expect(ids.size).toBe(10_000);
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(id.startsWith(messageIdPrefix(run))).toBe(true);
    }
  });
});
