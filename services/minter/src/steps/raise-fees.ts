import type { ChainRules, Fees } from '../ports.ts';

/** Nodes take another transaction of a nonce only when it pays a tenth more in both; an eighth is more than a tenth. */
const RAISE = 8n;
/** Blocks may become full: the base fee rises by an eighth a block at most. */
const BASE_FEE_ROOM = 2n;

const least = (one: bigint, other: bigint) => (one < other ? one : other);
const most = (one: bigint, other: bigint) => (one > other ? one : other);

/** What a new transaction offers; null while the chain asks for more than the cap. */
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
 * What the next variant of a nonce offers: an eighth more in both fields at least, rounded up, and what the chain asks for
 * now; null when a cap leaves no room for that.
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
