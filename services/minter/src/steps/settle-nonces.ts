import { NodeFault } from '@playline/chain';
import type { MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import { toHex } from '../chain/mint-calls.ts';
import { type MintedToken, matchTokens, mintedTokensOf } from '../chain/minted-tokens.ts';
import { type MintLedger, toAttemptKey } from '../lane/mint-ledger.ts';
import { type StateChange, toNextState } from '../lane/next-state.ts';
import type { ChainHead, ChainNode, MintReceipt } from '../ports.ts';

/** What stands in the chain at a nonce, as a node sees it now. */
export type NonceFate =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'mined';
      readonly transaction: MintTransactionRecord;
      readonly receipt: MintReceipt;
      /** Behind the horizon: this does not change any more. */
      readonly isFinal: boolean;
    };

/**
 * Looks which variant of a nonce stands in the chain. Nothing counts as final unless the node that told of it has the block
 * of the receipt and the block at the horizon: else it may tell of a branch that the chain has left.
 * @throws NodeFault
 */
export async function findFate(
  node: ChainNode,
  variants: readonly MintTransactionRecord[],
  head: ChainHead,
): Promise<NonceFate> {
  for (const transaction of variants.toReversed()) {
    const receipt = await node.receiptOf(toHex(transaction.hash));
    if (receipt === null) continue;
    // A node may still tell of a block that it has left.
    if ((await node.blockHashOf(receipt.blockNumber)) !== receipt.blockHash) continue;
    const isFinal = receipt.blockNumber <= head.finalized;
    if (isFinal) await checkHorizon(node, { number: head.finalized, hash: head.finalizedHash });
    return { kind: 'mined', transaction, receipt, isFinal };
  }
  return { kind: 'absent' };
}

/** @throws NodeFault when the node has another block where nothing changes any more */
export async function checkHorizon(node: ChainNode, { number, hash }: { number: number; hash: string }): Promise<void> {
  if ((await node.blockHashOf(number)) === hash) return;
  throw new NodeFault('inconsistent', `the node has another block ${number} than the one that was final`);
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
  const { transaction, receipt, isFinal } = fate;
  const { hash: transactionHash, kind } = transaction;
  const hasMinted = kind === 'mint' && receipt.isSuccess;
  // Spent, and still in reach of a reorganisation: what was reverted here may succeed on another branch.
  if (!isFinal) {
    const reason = kind === 'noop' ? 'The node refused its transaction, which was replaced.' : null;
    return () => ({ stage: hasMinted ? 'mined' : 'reverted', transactionHash, reason });
  }
  if (!hasMinted) return (state) => freeOrFail(settling.ledger, state, transaction);
  const tokenOf = createTokenOf(transaction, receipt);
  return (state) => toSuccess(settling, transaction, tokenOf(state));
}

/** The nonce is spent for good and minted nothing: the asset may be carried again, as often as that makes sense. */
function freeOrFail(ledger: MintLedger, state: MintStateRecord, { kind }: MintTransactionRecord): StateChange {
  const carried = { nonce: null, transactionHash: null };
  if (ledger.triesOf(state) < TRIES_MAX) {
    const what = kind === 'noop' ? 'The node refused its transaction' : 'Its transaction was reverted';
    return { ...carried, stage: 'waiting', reason: `${what}; it is tried again.` };
  }
  const error = `The contract reverted ${TRIES_MAX} transactions that it had agreed to when asked before.`;
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
