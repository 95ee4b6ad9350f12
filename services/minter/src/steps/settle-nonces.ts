import { NodeFault } from '@playline/chain';
import type { MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import { toHex } from '../chain/mint-calls.ts';
import { type MintedToken, matchTokens, mintedTokensOf } from '../chain/minted-tokens.ts';
import type { LaneTurn } from '../lane/lane-context.ts';
import { type MintLedger, toAttemptKey } from '../lane/mint-ledger.ts';
import { type StateChange, toNextState } from '../lane/next-state.ts';
import type { ChainHead, ChainNode, MintReceipt } from '../ports.ts';

/** What stands in the chain at a nonce, as a node sees it now. */
export type NonceFate =
  | { readonly kind: 'absent' }
  /** Spent behind the horizon by a transaction that is none of ours: none of ours will ever stand in a block. */
  | { readonly kind: 'foreign'; readonly hash: string }
  | {
      readonly kind: 'mined';
      readonly transaction: MintTransactionRecord;
      readonly receipt: MintReceipt;
      /** Behind the horizon: this does not change any more. */
      readonly isFinal: boolean;
    };

/**
 * Looks which variant of a nonce stands in the chain. Nothing counts as final unless one node has, in one answer, the receipt,
 * its block and the block at the horizon: else it may be of a branch that the chain has left.
 * @throws NodeFault
 */
export async function findFate(
  node: ChainNode,
  variants: readonly MintTransactionRecord[],
  head: ChainHead,
): Promise<NonceFate> {
  for (const transaction of variants.toReversed()) {
    const hash = toHex(transaction.hash);
    const receipt = await node.receiptOf(hash);
    if (receipt === null) continue;
    const { blockNumber } = receipt;
    const isFinal = blockNumber <= head.finalized;
    const standing = isFinal ? await findFinal(node, { hash, blockNumber }, head) : await findStanding(node, receipt);
    if (standing !== null) return { kind: 'mined', transaction, receipt: standing, isFinal };
  }
  return { kind: 'absent' };
}

/** A node may still tell of a block that it has left. */
async function findStanding(node: ChainNode, receipt: MintReceipt): Promise<MintReceipt | null> {
  return (await node.blockHashOf(receipt.blockNumber)) === receipt.blockHash ? receipt : null;
}

/** The guarantee: whoever tells of the receipt has the very block at the horizon, so its branch is the one that stays. */
async function findFinal(
  node: ChainNode,
  { hash, blockNumber }: { hash: string; blockNumber: number },
  { finalized, finalizedHash }: ChainHead,
): Promise<MintReceipt | null> {
  const { receipt, blockHashes } = await node.viewOf(hash, [blockNumber, finalized]);
  const [blockHash, horizonHash] = blockHashes;
  if (horizonHash !== finalizedHash) throw new NodeFault('inconsistent', toHorizonWords(finalized));
  return receipt?.blockNumber === blockNumber && receipt.blockHash === blockHash ? receipt : null;
}

const toHorizonWords = (number: number) => `the node has another block ${number} than the one that was final`;

/**
 * Looks who has spent a nonce that none of our transactions is found for. A receipt that a node does not have proves nothing:
 * only the transaction that stands behind the horizon in the place of ours does.
 * @throws NodeFault
 */
export async function findStranger(
  { node, head, lane }: Pick<LaneTurn, 'node' | 'head' | 'lane'>,
  nonce: number,
  variants: readonly MintTransactionRecord[],
): Promise<NonceFate> {
  const horizon = { number: head.finalized, hash: head.finalizedHash };
  const hash = await node.spenderOf({ address: toHex(lane.signer), nonce, horizon });
  const isOurs = variants.some((variant) => toHex(variant.hash) === hash);
  return hash === null || isOurs ? { kind: 'absent' } : { kind: 'foreign', hash };
}

/** @throws NodeFault when the node has another block where nothing changes any more */
export async function checkHorizon(node: ChainNode, { number, hash }: { number: number; hash: string }): Promise<void> {
  if ((await node.blockHashOf(number)) === hash) return;
  throw new NodeFault('inconsistent', toHorizonWords(number));
}

/** After so many nonces that were spent in vain an asset has failed. */
export const TRIES_MAX = 5;

export interface Settling {
  readonly ledger: MintLedger;
  /** Name of the chain. */
  readonly chain: string;
  /** Of the activity that a token is. */
  readonly activityIdOf: (place: { chain: string; transactionHash: string; logIndex: number; item: number }) => Buffer;
  /** Epoch milliseconds. */
  readonly changedAt: number;
  /** Why a nonce that stands in no block does not go on. */
  readonly reason?: string | null;
}

/** The states of the assets of a nonce that what stands in the chain changes. */
export function settleNonce(settling: Settling, nonce: number, fate: NonceFate): readonly MintStateRecord[] {
  const { ledger, changedAt } = settling;
  const changeOf = createChangeOf(settling, nonce, fate);
  return ledger.assetsOf(nonce).flatMap((state) => toNextState(state, changeOf(state), changedAt) ?? []);
}

function createChangeOf(settling: Settling, nonce: number, fate: NonceFate): (state: MintStateRecord) => StateChange {
  if (fate.kind === 'absent') {
    const newest = settling.ledger.variantsOf(nonce).at(-1)!;
    const { reason = null } = settling;
    return () => ({ stage: reason === null ? 'logged' : 'waiting', transactionHash: newest.hash, reason });
  }
  if (fate.kind === 'foreign') {
    const reason = `Its nonce ${nonce} was spent by ${fate.hash}, which is not known here`;
    return (state) => freeOrFail(settling.ledger, state, reason);
  }
  const { transaction, receipt, isFinal } = fate;
  const { hash: transactionHash, kind } = transaction;
  const hasMinted = kind === 'mint' && receipt.isSuccess;
  // Spent, and still in reach of a reorganisation: what was reverted here may succeed on another branch.
  if (!isFinal) {
    const reason = kind === 'noop' ? 'The node refused its transaction, which was replaced.' : null;
    return () => ({ stage: hasMinted ? 'mined' : 'reverted', transactionHash, reason });
  }
  const why = kind === 'noop' ? 'The node refused its transaction' : 'Its transaction was reverted';
  if (!hasMinted) return (state) => freeOrFail(settling.ledger, state, why);
  const tokenOf = createTokenOf(transaction, receipt);
  return (state) => toSuccess(settling, transaction, tokenOf(state));
}

/** The nonce is spent for good and minted nothing: the asset may be carried again, as often as that makes sense. */
function freeOrFail(ledger: MintLedger, state: MintStateRecord, why: string): StateChange {
  const carried = { nonce: null, transactionHash: null };
  if (ledger.triesOf(state) < TRIES_MAX) return { ...carried, stage: 'waiting', reason: `${why}; it is tried again.` };
  const error = `None of ${TRIES_MAX} transactions minted it, though the contract had agreed to each when asked before. ${why}.`;
  return { ...carried, status: 'failed', stage: 'settled', reason: null, error };
}

function createTokenOf(transaction: MintTransactionRecord, receipt: MintReceipt) {
  const tokens = mintedTokensOf(receipt, toHex(transaction.contractAddress!));
  const matched = matchTokens(transaction.assets, tokens);
  const byAttempt = new Map(transaction.assets.map((asset, at) => [toAttemptKey(asset), matched[at] ?? null]));
  return (state: MintStateRecord) => byAttempt.get(toAttemptKey(state)) ?? null;
}

function toSuccess(
  { chain, activityIdOf }: Settling,
  { hash }: MintTransactionRecord,
  token: MintedToken | null,
): StateChange {
  const done = { status: 'succeeded', stage: 'settled', reason: null, transactionHash: hash } as const;
  // The token is there, and which one it is the contract does not say. A failure would give the reference id back, and
  // whoever asked again would have two.
  if (token === null) return done;
  const { tokenId, logIndex, item } = token;
  return { ...done, tokenId, activityId: activityIdOf({ chain, transactionHash: toHex(hash), logIndex, item }) };
}
