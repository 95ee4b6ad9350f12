import type { ChainRules, Fees } from '../ports.ts';

/** Nodes replace a transaction only when both fees rise by at least a tenth; an eighth is more than that. */
const RAISE = 8n;
/** Room for full blocks, which raise the base fee by an eighth each. */
const BASE_FEE_ROOM = 2n;

const least = (one: bigint, other: bigint) => (one < other ? one : other);
const most = (one: bigint, other: bigint) => (one > other ? one : other);

/** Fees of a new transaction; null while the chain asks for more than the maximum. */
export function chooseFees(
  { baseFee, priorityFee }: { readonly baseFee: bigint; readonly priorityFee: bigint },
  { feeMax, priorityFeeMax }: Pick<ChainRules, 'feeMax' | 'priorityFeeMax'>,
): Fees | null {
  const maxPriorityFeePerGas = least(most(priorityFee, 1n), priorityFeeMax);
  if (baseFee + maxPriorityFeePerGas > feeMax) return null;
  return { maxFeePerGas: least(BASE_FEE_ROOM * baseFee + maxPriorityFeePerGas, feeMax), maxPriorityFeePerGas };
}

const raised = (fee: bigint) => fee + (fee + RAISE - 1n) / RAISE;

/**
 * Fees of the next variant of a nonce: at least an eighth more in both fields, rounded up, and at least what the chain
 * asks for now; null when a maximum leaves no room for that.
 */
export function raiseFees(
  before: Fees,
  now: { readonly baseFee: bigint; readonly priorityFee: bigint },
  rules: Pick<ChainRules, 'feeMax' | 'priorityFeeMax'>,
): Fees | null {
  const floor = {
    maxFeePerGas: raised(before.maxFeePerGas),
    maxPriorityFeePerGas: raised(before.maxPriorityFeePerGas),
  };
  if (floor.maxFeePerGas > rules.feeMax || floor.maxPriorityFeePerGas > rules.priorityFeeMax) return null;
  const wanted = chooseFees(now, rules) ?? floor;
  const maxPriorityFeePerGas = most(floor.maxPriorityFeePerGas, wanted.maxPriorityFeePerGas);
  return {
    maxFeePerGas: most(most(floor.maxFeePerGas, wanted.maxFeePerGas), maxPriorityFeePerGas),
    maxPriorityFeePerGas,
  };
}
