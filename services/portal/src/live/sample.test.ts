import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toQuotas } from './watch.ts';

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

describe('the quotas of a sample', () => {
  it('are all that waits while there is room, and fill the room when there is not', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 10_000 }), { maxLength: 20 }), fc.nat({ max: 5_000 }), (waiting, room) => {
        const quotas = toQuotas(waiting, room);
        expect(sum(quotas)).toBe(Math.min(sum(waiting), room));
        expect(quotas.every((quota, index) => quota <= waiting[index]! && quota >= 0)).toBe(true);
      }),
    );
  });

  it('are even: of what is cut, none is cut more than one further than another', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 500 }), { minLength: 1, maxLength: 12 }),
        fc.nat({ max: 500 }),
        (waiting, room) => {
          const quotas = toQuotas(waiting, room);
          const cut = quotas.filter((quota, index) => quota < waiting[index]!);
          if (cut.length === 0) return;
          expect(Math.max(...cut) - Math.min(...cut)).toBeLessThanOrEqual(1);
          expect(Math.max(...quotas)).toBeLessThanOrEqual(Math.min(...cut) + 1);
        },
      ),
    );
  });
});
