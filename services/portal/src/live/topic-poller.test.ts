import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toQuotas } from './topic-poller.ts';

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

it('toQuotas allocates quotas for all waiting records up to the limit', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 10_000 }), { maxLength: 20 }), fc.nat({ max: 5_000 }), (waiting, limit) => {
      const quotas = toQuotas(waiting, limit);
      expect(sum(quotas)).toBe(Math.min(sum(waiting), limit));
      expect(quotas.every((quota, index) => quota <= waiting[index]! && quota >= 0)).toBe(true);
    }),
  );
});

it('toQuotas allocates equal quotas, within one record, to partitions with more records than their quota', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 500 }), { minLength: 1, maxLength: 12 }),
      fc.nat({ max: 500 }),
      (waiting, limit) => {
        const quotas = toQuotas(waiting, limit);
        const limited = quotas.filter((quota, index) => quota < waiting[index]!);
        if (limited.length === 0) return;
        expect(Math.max(...limited) - Math.min(...limited)).toBeLessThanOrEqual(1);
        expect(Math.max(...quotas)).toBeLessThanOrEqual(Math.min(...limited) + 1);
      },
    ),
  );
});
