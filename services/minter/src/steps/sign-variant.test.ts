import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chooseFees, raiseFees } from './sign-variant.ts';

const rules = { feeMax: 1_000n, priorityFeeMax: 100n };
const fee = fc.bigInt({ min: 1n, max: 2_000n });

it('fees cover what the chain requires without exceeding the maximum', () => {
  fc.assert(
    fc.property(fee, fee, (baseFee, priorityFee) => {
      const fees = chooseFees({ baseFee, priorityFee }, rules);
      expect(fees === null).toBe(baseFee + (priorityFee < 100n ? priorityFee : 100n) > rules.feeMax);
      if (fees === null) return;
      expect(fees.maxFeePerGas <= rules.feeMax && fees.maxPriorityFeePerGas <= rules.priorityFeeMax).toBe(true);
      expect(fees.maxFeePerGas >= baseFee + fees.maxPriorityFeePerGas).toBe(true);
    }),
  );
});

it('raiseFees raises both fees by at least an eighth, or returns null', () => {
  fc.assert(
    fc.property(fee, fee, fee, fee, (maxFeePerGas, maxPriorityFeePerGas, baseFee, priorityFee) => {
      const raised = raiseFees({ maxFeePerGas, maxPriorityFeePerGas }, { baseFee, priorityFee }, rules);
      if (raised === null) return;
      expect(raised.maxFeePerGas * 8n >= maxFeePerGas * 9n).toBe(true);
      expect(raised.maxPriorityFeePerGas * 8n >= maxPriorityFeePerGas * 9n).toBe(true);
      expect(raised.maxFeePerGas <= rules.feeMax && raised.maxPriorityFeePerGas <= rules.priorityFeeMax).toBe(true);
      expect(raised.maxFeePerGas >= raised.maxPriorityFeePerGas).toBe(true);
    }),
  );
});
