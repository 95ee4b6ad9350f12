import { type ActivityPlace, type BlockName, NodeFault } from '@playline/chain';
import { type MintStateRecord, type MintTransactionRecord, toHexText } from '@playline/contracts';
import { type MintedToken, matchTokens, mintedTokensOf } from '../chain/minted-tokens.ts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import type { LaneTurn } from '../lane/lane-context.ts';
import type { MintLedger } from '../lane/mint-ledger.ts';
import { type StateChange, toNextState } from '../lane/next-state.ts';
import type { ChainHead, ChainNode, MintReceipt } from '../ports.ts';

/** The state of a nonce in the chain, as a node reports it now. */
export type NonceFate =
  | { readonly kind: 'absent' }
  /** A final transaction of another sender with the key spent it: ours will never be in a block. */
  | { readonly kind: 'foreign'; readonly hash: string }
  | {
      readonly kind: 'mined';
      readonly transaction: MintTransactionRecord;
      readonly receipt: MintReceipt;
      /** Its block is final, so this never changes. */
      readonly isFinal: boolean;
    };

/**
 * Finds the variant of a nonce that is in the chain. It counts as final only if one node returns the receipt, its block
 * and the last final block in one answer: otherwise it may be on an abandoned branch.
 * @throws NodeFault
 */
export async function findFate(
  node: ChainNode,
  variants: readonly MintTransactionRecord[],
  head: ChainHead,
): Promise<NonceFate> {
  for (const transaction of variants.toReversed()) {
    const hash = toHexText(transaction.hash);
    const receipt = await node.receiptOf(hash);
    if (receipt === null) continue;
    const { blockNumber } = receipt;
    const isFinal = blockNumber <= head.finalized;
    const standing = isFinal ? await findFinal(node, { hash, blockNumber }, head) : await findStanding(node, receipt);
    if (standing !== null) return { kind: 'mined', transaction, receipt: standing, isFinal };
  }
  return { kind: 'absent' };
}

/** A node may still return a receipt of a block that a reorganisation replaced. */
async function findStanding(node: ChainNode, receipt: MintReceipt): Promise<MintReceipt | null> {
  return (await node.blockHashOf(receipt.blockNumber)) === receipt.blockHash ? receipt : null;
}

/** Guarantee: the node that returns the receipt also has our final block, so it is on the branch that stays. */
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
 * Finds out who spent a nonce when none of our transactions is found. A missing receipt proves nothing; only a final
 * transaction in the place of ours does.
 * @throws NodeFault
 */
export async function findStranger(
  { node, head, lane }: Pick<LaneTurn, 'node' | 'head' | 'lane'>,
  nonce: number,
  variants: readonly MintTransactionRecord[],
): Promise<NonceFate> {
  const horizon = { number: head.finalized, hash: head.finalizedHash };
  const hash = await node.spenderOf({ address: toHexText(lane.signer), nonce, horizon });
  const isOurs = variants.some((variant) => toHexText(variant.hash) === hash);
  return hash === null || isOurs ? { kind: 'absent' } : { kind: 'foreign', hash };
}

/**
 * The node lags or was restored from an older copy: then a missing block or receipt proves nothing. Or it is on another
 * branch.
 * @throws NodeFault
 */
export function checkHorizon(head: ChainHead, { number, hash }: BlockName): void {
  if (head.number < number) throw new NodeFault('behind', `the node ends before block ${number}, which was final`);
  if (head.knownHash !== hash) throw new NodeFault('inconsistent', toHorizonWords(number));
}

/** An asset fails after this many nonces that were spent without minting it. */
export const TRIES_MAX = 5;

export interface Settling {
  readonly ledger: MintLedger;
  /** Name of the chain. */
  readonly chain: string;
  /** The id of the activity that reports the minted token. */
  readonly activityIdOf: (place: ActivityPlace) => Buffer;
  /** Epoch milliseconds. */
  readonly changedAt: number;
  /** Why a nonce is in no block yet. */
  readonly reason?: string | null;
}

/** The changed states of the assets of a nonce. */
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
  // In a block but not final: what reverted here may succeed on another branch.
  if (!isFinal) {
    const reason = kind === 'noop' ? 'The node refused its transaction, which was replaced.' : null;
    return () => ({ stage: hasMinted ? 'mined' : 'reverted', transactionHash, reason });
  }
  const why = kind === 'noop' ? 'The node refused its transaction' : 'Its transaction was reverted';
  if (!hasMinted) return (state) => freeOrFail(settling.ledger, state, why);
  const tokenOf = createTokenOf(transaction, receipt);
  return (state) => toSuccess(settling, transaction, tokenOf(state));
}

/** The nonce is finally spent and minted nothing: the asset is tried again, up to the limit. */
function freeOrFail(ledger: MintLedger, state: MintStateRecord, why: string): StateChange {
  const carried = { nonce: null, transactionHash: null };
  if (ledger.triesOf(state) < TRIES_MAX) return { ...carried, stage: 'waiting', reason: `${why}; it is tried again.` };
  const error = `None of ${TRIES_MAX} transactions minted it, though the contract had agreed to each when asked before. ${why}.`;
  return { ...carried, status: 'failed', stage: 'settled', reason: null, error };
}

function createTokenOf(transaction: MintTransactionRecord, receipt: MintReceipt) {
  const tokens = mintedTokensOf(receipt, toHexText(transaction.contractAddress!));
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
  // The token exists, but the contract does not say which one it is. A failure would free the reference id, and a
  // second request would mint a second token.
  if (token === null) return done;
  const { tokenId, logIndex, item } = token;
  return { ...done, tokenId, activityId: activityIdOf({ chain, transactionHash: toHexText(hash), logIndex, item }) };
}
