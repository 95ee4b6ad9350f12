import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLedger, FATES, type Fate } from './ledger.ts';
import { createRun, messageIdPrefix, toMessageId } from './run.ts';

describe('createLedger', () => {
  it('keeps the last fate of every message, like a plain map', () => {
    const fates = fc.array(fc.tuple(fc.nat(999), fc.constantFrom<Fate>(...FATES)), { maxLength: 200 });
    fc.assert(
      fc.property(fates, (changes) => {
        const ledger = createLedger();
        for (let taken = 0; taken < 1000; taken++) expect(ledger.take()).toBe(taken);
        const plain = new Map<number, Fate>(changes);
        for (const [sequence, fate] of changes) ledger.set(sequence, fate);
        for (const [sequence, fate] of plain) expect(ledger.fateOf(sequence)).toBe(fate);
        const accepted = [...plain.values()].filter((fate) => fate === 'accepted').length;
        expect(ledger.count('accepted')).toBe(accepted);
      }),
    );
  });

  it('keeps its contents when it grows', () => {
    const ledger = createLedger();
    ledger.set(ledger.take(), 'accepted');
    while (ledger.taken < 200_000) ledger.take();
    ledger.set(199_999, 'unknown');
    expect([ledger.fateOf(0), ledger.fateOf(1), ledger.fateOf(199_999)]).toEqual(['accepted', 'unsent', 'unknown']);
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
