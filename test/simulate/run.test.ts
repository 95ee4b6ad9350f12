import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createLedger, createRun, messageIdPrefix, OUTCOMES, type Outcome, toMessageId } from './run.ts';

it('the ledger returns the last outcome of every message', () => {
  const outcomes = fc.array(fc.tuple(fc.nat(999), fc.constantFrom<Outcome>(...OUTCOMES)), { maxLength: 200 });
  fc.assert(
    fc.property(outcomes, (changes) => {
      const ledger = createLedger();
      for (let taken = 0; taken < 1000; taken++) expect(ledger.take()).toBe(taken);
      const last = new Map<number, Outcome>(changes);
      for (const [sequence, outcome] of changes) ledger.set(sequence, outcome);
      for (const [sequence, outcome] of last) expect(ledger.outcomeOf(sequence)).toBe(outcome);
      expect(ledger.count('accepted')).toBe([...last.values()].filter((outcome) => outcome === 'accepted').length);
    }),
  );
});

it('the ledger retains outcomes when it grows, and throws for an unknown sequence number', () => {
  const ledger = createLedger();
  ledger.set(ledger.take(), 'accepted');
  while (ledger.taken < 200_000) ledger.take();
  ledger.set(199_999, 'unknown');
  expect([0, 1, 199_999].map(ledger.outcomeOf)).toEqual(['accepted', 'unsent', 'unknown']);
  expect(() => ledger.set(200_000, 'accepted')).toThrow(RangeError);
});

it('toMessageId returns unique UUIDs with the run’s prefix', () => {
  const run = createRun(1, 0);
  const ids = new Set(Array.from({ length: 10_000 }, (_, sequence) => toMessageId(run, sequence)));
  expect(ids.size).toBe(10_000);
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(id.startsWith(messageIdPrefix(run))).toBe(true);
  }
});
