import { type ActivityLocation, type BlockName, NodeFault } from '@playline/chain';
import { type CarriedAsset, type MintStateRecord, type MintTransactionRecord, toHexText } from '@playline/contracts';
import { decodeAbiParameters } from 'viem/utils';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import type { LaneTurn } from '../lane/lane-context.ts';
import { type StateChange, toNextState } from '../lane/lane-context.ts';
import type { MintLedger } from '../lane/mint-ledger.ts';
import type { ChainHead, ChainNode, EventLog, MintReceipt } from '../ports.ts';

/** A nonce's outcome, as reported by a node. */
export type NonceOutcome =
  | { readonly kind: 'absent' }
  /** Another program's transaction used the nonce and is final. */
  | { readonly kind: 'foreign'; readonly hash: string }
  | {
      readonly kind: 'mined';
      readonly transaction: MintTransactionRecord;
      readonly receipt: MintReceipt;
      readonly isFinal: boolean;
    };

/** Finds the outcome. It is final only if one response contains the receipt, its block and the final block. */
export async function findOutcome(
  node: ChainNode,
  variants: readonly MintTransactionRecord[],
  head: ChainHead,
): Promise<NonceOutcome> {
  for (const transaction of variants.toReversed()) {
    const hash = toHexText(transaction.hash);
    const receipt = await node.receiptOf(hash);
    if (receipt === null) continue;
    const { blockNumber } = receipt;
    const isFinal = blockNumber <= head.finalized;
    const current = isFinal ? await findFinal(node, { hash, blockNumber }, head) : await findCurrent(node, receipt);
    if (current !== null) return { kind: 'mined', transaction, receipt: current, isFinal };
  }
  return { kind: 'absent' };
}

/** Drops a receipt from a replaced block. */
async function findCurrent(node: ChainNode, receipt: MintReceipt): Promise<MintReceipt | null> {
  return (await node.blockHashOf(receipt.blockNumber)) === receipt.blockHash ? receipt : null;
}

/** Guarantee: the response contains the final block, so the receipt is from the final branch. */
async function findFinal(
  node: ChainNode,
  { hash, blockNumber }: { hash: string; blockNumber: number },
  { finalized, finalizedHash }: ChainHead,
): Promise<MintReceipt | null> {
  const { receipt, blockHashes } = await node.viewOf(hash, [blockNumber, finalized]);
  const [blockHash, horizonHash] = blockHashes;
  if (horizonHash !== finalizedHash) throw new NodeFault('inconsistent', toHorizonMessage(finalized));
  return receipt?.blockNumber === blockNumber && receipt.blockHash === blockHash ? receipt : null;
}

const toHorizonMessage = (number: number) => `the node has a different final block ${number}`;

/** A missing receipt proves nothing. Only a final transaction with the nonce is proof. @throws NodeFault */
export async function findForeignTransaction(
  { node, head, lane }: Pick<LaneTurn, 'node' | 'head' | 'lane'>,
  nonce: number,
  variants: readonly MintTransactionRecord[],
): Promise<NonceOutcome> {
  const horizon = { number: head.finalized, hash: head.finalizedHash };
  const hash = await node.hashByNonce({ address: toHexText(lane.signer), nonce, horizon });
  const isOwn = variants.some((variant) => toHexText(variant.hash) === hash);
  return hash === null || isOwn ? { kind: 'absent' } : { kind: 'foreign', hash };
}

/** Rejects a node that lags, was restored from a backup or is on another branch. @throws NodeFault */
export function checkHorizon(head: ChainHead, { number, hash }: BlockName): void {
  if (head.number < number) throw new NodeFault('behind', `the node is behind final block ${number}`);
  if (head.knownHash !== hash) throw new NodeFault('inconsistent', toHorizonMessage(number));
}

/** Maximum nonces that an asset may use without being minted. */
export const TRIES_MAX = 5;

export interface Settling {
  readonly ledger: MintLedger;
  readonly chain: string;
  readonly activityIdOf: (location: ActivityLocation) => Buffer;
  /** In epoch milliseconds. */
  readonly changedAt: number;
  /** Why the transaction is not in a block. */
  readonly reason?: string | null;
}

export function settleNonce(settling: Settling, nonce: number, outcome: NonceOutcome): readonly MintStateRecord[] {
  const { ledger, changedAt } = settling;
  const changeOf = createChangeOf(settling, nonce, outcome);
  return ledger.assetsOf(nonce).flatMap((state) => toNextState(state, changeOf(state), changedAt) ?? []);
}

function createChangeOf(
  settling: Settling,
  nonce: number,
  outcome: NonceOutcome,
): (state: MintStateRecord) => StateChange {
  if (outcome.kind === 'absent') {
    const newest = settling.ledger.variantsOf(nonce).at(-1)!;
    const { reason = null } = settling;
    return () => ({ stage: reason === null ? 'logged' : 'waiting', transactionHash: newest.hash, reason });
  }
  if (outcome.kind === 'foreign') {
    const reason = `Nonce ${nonce} was used by ${outcome.hash}, which is not on the log`;
    return (state) => retryOrFail(settling.ledger, state, reason);
  }
  const { transaction, receipt, isFinal } = outcome;
  const { hash: transactionHash, kind } = transaction;
  const hasMinted = kind === 'mint' && receipt.isSuccess;
  // A transaction that reverted on this branch may succeed on another branch.
  if (!isFinal) {
    const reason = kind === 'noop' ? 'The node rejected the transaction, which was replaced.' : null;
    return () => ({ stage: hasMinted ? 'mined' : 'reverted', transactionHash, reason });
  }
  const cause = kind === 'noop' ? 'The node rejected the transaction' : 'The transaction was reverted';
  if (!hasMinted) return (state) => retryOrFail(settling.ledger, state, cause);
  const tokenOf = createTokenOf(transaction, receipt);
  return (state) => toSuccess(settling, transaction, tokenOf(state));
}

function retryOrFail(ledger: MintLedger, state: MintStateRecord, cause: string): StateChange {
  const cleared = { nonce: null, transactionHash: null };
  if (ledger.triesOf(state) < TRIES_MAX)
    return { ...cleared, stage: 'waiting', reason: `${cause}; it will be retried.` };
  const error = `None of ${TRIES_MAX} transactions minted the asset, although every simulation succeeded. ${cause}.`;
  return { ...cleared, status: 'failed', stage: 'settled', reason: null, error };
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
  // The contract reports no token. A failure would release the reference id and allow a second token.
  if (token === null) return done;
  const { tokenId, logIndex, item } = token;
  return { ...done, tokenId, activityId: activityIdOf({ chain, transactionHash: toHexText(hash), logIndex, item }) };
}

export interface MintedToken {
  /** In lower case. */
  readonly owner: string;
  /** Decimal digits. */
  readonly tokenId: string;
  readonly amount: string;
  readonly logIndex: number;
  /** The token's index within the event. */
  readonly item: number;
}

export const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
export const TRANSFER_SINGLE = '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62';
export const TRANSFER_BATCH = '0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb';
/** The ERC-2309 event for all tokens from one id to another. */
export const CONSECUTIVE_TRANSFER = '0xdeaa91b6123d068f5821d0fb0678463d1a8a6079fe8af5de3ce5e896dcf9133d';
/** An event can report any number of tokens, but the minter's transactions never mint this many. */
const CONSECUTIVE_MAX = 1_000;
const ZERO_TOPIC = `0x${'0'.repeat(64)}`;
const SINGLE_ABI = [{ type: 'uint256' }, { type: 'uint256' }] as const;
const BATCH_ABI = [{ type: 'uint256[]' }, { type: 'uint256[]' }] as const;

/** Reads the minted tokens in event order. @param contract in lower case */
export function mintedTokensOf({ logs }: Pick<MintReceipt, 'logs'>, contract: string): MintedToken[] {
  return logs.filter(({ address }) => address === contract).flatMap(readEvent);
}

/** Ignores events that cannot be decoded, because a contract may emit anything. */
function readEvent(log: EventLog): MintedToken[] {
  try {
    return tokensOf(log);
  } catch {
    return [];
  }
}

function tokensOf(log: EventLog): MintedToken[] {
  const { topics, data, logIndex } = log;
  const [event, first, second, third] = topics;
  if (event === CONSECUTIVE_TRANSFER) return readConsecutive(log);
  if (event === TRANSFER && topics.length === 4 && first === ZERO_TOPIC) {
    const tokenId = BigInt(third!).toString();
    return [{ owner: toOwner(second!), tokenId, amount: '1', logIndex, item: 0 }];
  }
  const isBatch = event === TRANSFER_BATCH;
  if ((!isBatch && event !== TRANSFER_SINGLE) || topics.length !== 4 || second !== ZERO_TOPIC) return [];
  const hexData = data as `0x${string}`;
  const owner = toOwner(third!);
  if (!isBatch) {
    const [id, value] = decodeAbiParameters(SINGLE_ABI, hexData);
    return [{ owner, tokenId: id.toString(), amount: value.toString(), logIndex, item: 0 }];
  }
  const [ids, values] = decodeAbiParameters(BATCH_ABI, hexData);
  return ids.map((id, item) => ({ owner, tokenId: id.toString(), amount: String(values[item]), logIndex, item }));
}

function readConsecutive({ topics, data, logIndex }: EventLog): MintedToken[] {
  const [, first, from, to] = topics;
  if (topics.length !== 4 || from !== ZERO_TOPIC) return [];
  const start = BigInt(first!);
  const [end] = decodeAbiParameters([{ type: 'uint256' }], data as `0x${string}`);
  const count = end - start + 1n;
  const length = count > BigInt(CONSECUTIVE_MAX) ? CONSECUTIVE_MAX : Math.max(0, Number(count));
  const owner = toOwner(to!);
  return Array.from({ length }, (_, item) => {
    const tokenId = (start + BigInt(item)).toString();
    return { owner, tokenId, amount: '1', logIndex, item };
  });
}

const toOwner = (topic: string) => `0x${topic.slice(26)}`;

/** Matches each asset with the first unmatched token that has the same owner, id and amount, or with null. */
export function matchTokens(
  assets: readonly CarriedAsset[],
  tokens: readonly MintedToken[],
): readonly (MintedToken | null)[] {
  const unmatched = [...tokens];
  return assets.map((asset) => {
    const at = unmatched.findIndex((token) => matches(asset, token));
    return at === -1 ? null : unmatched.splice(at, 1)[0]!;
  });
}

function matches({ ownerAddress, tokenId, amount }: CarriedAsset, token: MintedToken): boolean {
  return (
    token.owner === `0x${ownerAddress.toString('hex')}` &&
    (tokenId === null || tokenId === token.tokenId) &&
    (amount ?? '1') === token.amount
  );
}
