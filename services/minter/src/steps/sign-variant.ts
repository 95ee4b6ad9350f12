import { type MintStateRecord, type MintTransactionRecord, toHexText } from '@playline/contracts';
import { changeAll, type LaneTurn } from '../lane/lane-context.ts';
import type { ChainRules, Fees, LaneChange, UnsignedTransaction } from '../ports.ts';
import type { MintPlan } from './plan-mint.ts';

const NOOP_GAS = 21_000;

/** Signs a mint. The change includes the assets' states and the highest nonce. */
export async function signMint(turn: LaneTurn, plan: MintPlan, nonce: number): Promise<LaneChange> {
  const { assets, contractAddress, data, gas, maxFeePerGas, maxPriorityFeePerGas } = plan;
  const { chainId } = turn.rules;
  const to = toHexText(contractAddress);
  const call = { chainId, nonce, to, data, gas, maxFeePerGas, maxPriorityFeePerGas };
  const transaction = await signRecord(turn, call, { variant: 0, kind: 'mint', contractAddress, assets });
  const logged = { stage: 'logged', reason: null, nonce, transactionHash: transaction.hash } as const;
  return {
    states: changeAll(turn, assets, logged),
    transactions: [transaction, toHighWater(transaction)],
    forgotten: [],
  };
}

/** @returns null if the fees would exceed the maximum */
export async function signRaise(turn: LaneTurn, nonce: number): Promise<LaneChange | null> {
  const newest = turn.ledger.variantsOf(nonce).at(-1)!;
  const fees = raiseFees(toFees(newest), await fetchFees(turn), turn.rules);
  if (fees === null) return null;
  // All variants contain the same call, so the call is read from the logged bytes.
  const call = { ...turn.signer.read(newest.signedBytes), ...fees };
  const { kind, contractAddress, assets } = newest;
  return toNextVariant(
    turn,
    await signRecord(turn, call, { variant: newest.variant + 1, kind, contractAddress, assets }),
  );
}

/** Replaces bytes that nodes never accept, because they would block later nonces. */
export async function signNoop(turn: LaneTurn, nonce: number): Promise<LaneChange> {
  const newest = turn.ledger.variantsOf(nonce).at(-1)!;
  const requested = await fetchFees(turn);
  const fees = raiseFees(toFees(newest), requested, turn.rules) ?? chooseFees(requested, turn.rules) ?? toFees(newest);
  const { chainId } = turn.rules;
  const call = { chainId, nonce, to: toHexText(turn.lane.signer), data: '0x', gas: NOOP_GAS, ...fees };
  const content = { variant: newest.variant + 1, kind: 'noop', contractAddress: null, assets: [] } as const;
  return toNextVariant(turn, await signRecord(turn, call, content));
}

const toFees = (record: MintTransactionRecord): Fees => ({
  maxFeePerGas: BigInt(record.maxFeePerGas),
  maxPriorityFeePerGas: BigInt(record.maxPriorityFeePerGas),
});

async function fetchFees({ node, head }: LaneTurn) {
  return { baseFee: head.baseFee, priorityFee: await node.priorityFee() };
}

function toNextVariant(turn: LaneTurn, transaction: MintTransactionRecord): LaneChange {
  const pending = turn.ledger.assetsOf(transaction.nonce);
  const states = changeAll(turn, pending, { transactionHash: transaction.hash });
  return { states, transactions: [transaction], forgotten: [] };
}

interface VariantContent extends Pick<MintTransactionRecord, 'variant' | 'kind' | 'contractAddress'> {
  readonly assets: readonly Pick<
    MintStateRecord,
    'referenceId' | 'attemptId' | 'tokenId' | 'amount' | 'ownerAddress'
  >[];
}

async function signRecord(turn: LaneTurn, call: UnsignedTransaction, content: VariantContent) {
  const { lane, signer, genesisHash, clock } = turn;
  const { hash, bytes } = await signer.sign(call, { isOpen: content.variant > 0 });
  const assets = content.assets.map(({ referenceId, attemptId, tokenId, amount, ownerAddress }) => ({
    referenceId,
    attemptId,
    tokenId,
    amount,
    ownerAddress,
  }));
  const record: MintTransactionRecord = {
    chain: lane.chain,
    signer: lane.signer,
    nonce: call.nonce,
    ...content,
    assets,
    hash,
    signedBytes: bytes,
    gasLimit: call.gas,
    genesisHash,
    maxFeePerGas: call.maxFeePerGas.toString(),
    maxPriorityFeePerGas: call.maxPriorityFeePerGas.toString(),
    loggedAt: clock.wallClockMs(),
  };
  return record;
}

/** Creates the record of the highest nonce. It is never deleted, so that no nonce is used twice. */
function toHighWater(transaction: MintTransactionRecord): MintTransactionRecord {
  const noContent = { contractAddress: null, assets: [], hash: Buffer.alloc(32), signedBytes: Buffer.alloc(0) };
  const noFees = { gasLimit: 0, maxFeePerGas: '0', maxPriorityFeePerGas: '0' };
  return { ...transaction, ...noContent, ...noFees, variant: 0, kind: 'high_water' };
}

/** The fees are raised by one eighth, because nodes require an increase of a tenth in both. */
const RAISE_DIVISOR = 8n;
/** Leaves headroom for full blocks, each of which raises the base fee by an eighth. */
const BASE_FEE_MARGIN = 2n;

const min = (one: bigint, other: bigint) => (one < other ? one : other);
const max = (one: bigint, other: bigint) => (one > other ? one : other);

/** @returns null if the fees would exceed the maximum */
export function chooseFees(
  { baseFee, priorityFee }: { readonly baseFee: bigint; readonly priorityFee: bigint },
  { feeMax, priorityFeeMax }: Pick<ChainRules, 'feeMax' | 'priorityFeeMax'>,
): Fees | null {
  const maxPriorityFeePerGas = min(max(priorityFee, 1n), priorityFeeMax);
  if (baseFee + maxPriorityFeePerGas > feeMax) return null;
  return { maxFeePerGas: min(BASE_FEE_MARGIN * baseFee + maxPriorityFeePerGas, feeMax), maxPriorityFeePerGas };
}

const raiseFee = (fee: bigint) => fee + (fee + RAISE_DIVISOR - 1n) / RAISE_DIVISOR;

/** Raises both fees by at least an eighth and to at least the current fees. Returns null above a maximum. */
export function raiseFees(
  before: Fees,
  current: { readonly baseFee: bigint; readonly priorityFee: bigint },
  rules: Pick<ChainRules, 'feeMax' | 'priorityFeeMax'>,
): Fees | null {
  const floor = {
    maxFeePerGas: raiseFee(before.maxFeePerGas),
    maxPriorityFeePerGas: raiseFee(before.maxPriorityFeePerGas),
  };
  if (floor.maxFeePerGas > rules.feeMax || floor.maxPriorityFeePerGas > rules.priorityFeeMax) return null;
  const currentFees = chooseFees(current, rules) ?? floor;
  const maxPriorityFeePerGas = max(floor.maxPriorityFeePerGas, currentFees.maxPriorityFeePerGas);
  return {
    maxFeePerGas: max(max(floor.maxFeePerGas, currentFees.maxFeePerGas), maxPriorityFeePerGas),
    maxPriorityFeePerGas,
  };
}
