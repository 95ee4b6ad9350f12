import { CONTRACT_ROLES } from '@playline/access-keys';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import { decodeFunctionResult, encodeFunctionData } from 'viem/utils';
import {
  ERC721_INTERFACE,
  ERC1155_INTERFACE,
  encodeMint,
  MINT_ABI,
  type TokenStandard,
  toFunctionKey,
  validationErrorOf,
} from '../chain/mint-calls.ts';
import { changeAll, type LaneTurn } from '../lane/lane-context.ts';
import type { CallOutcome, ContractCall, Fees } from '../ports.ts';
import { TRIES_MAX } from './settle-nonces.ts';
import { chooseFees } from './sign-variant.ts';

export interface MintPlan extends Fees {
  readonly assets: readonly MintStateRecord[];
  readonly contractAddress: Buffer;
  readonly data: string;
  readonly gas: number;
}

export interface Planned {
  /** null if nothing can be sent now. */
  readonly plan: MintPlan | null;
  /** New states for assets that fail or wait. */
  readonly states: readonly MintStateRecord[];
}

/** Margin for changes on the chain after the estimate. */
const GAS_MARGIN = 1.25;
/** Maximum assets per transaction by nonces already used. After reverts, an asset is grouped with fewer assets. */
const ASSETS_MAX_BY_TRIES = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 10, 1, 1];
/** Repeats an unrunnable call, because a node's fault must never fail an asset. */
const REPEATS = 2;
/** Errors whose cause an administrator can remove. */
const TRANSIENT_MESSAGES = /^AccessControl|^EnforcedPause|paused/;

/** @param assets pending assets without a nonce, in order, at least one */
export async function planMint(turn: LaneTurn, assets: readonly MintStateRecord[]): Promise<Planned> {
  const { lane, signer } = turn;
  const defer = (reason: string, all = assets): Planned => ({
    plan: null,
    states: changeAll(turn, all, { stage: 'waiting', reason }),
  });
  const status = signer.status(assets[0]!.environmentId);
  if (status.kind === 'blocked') return defer(status.reason);
  const contract = toHexText(assets[0]!.contractAddress);
  const standard = await findStandard(turn, contract);
  if (standard === null) return defer('The contract is neither ERC-721 nor ERC-1155.');
  if (!(await hasRole(turn, contract))) return defer(`${toHexText(lane.signer)} has no MINTER_ROLE on the contract.`);
  const invalid = assets.filter((asset) => validationErrorOf(asset, standard) !== null);
  if (invalid.length > 0) {
    const states = invalid.flatMap((asset) => fail(turn, [asset], validationErrorOf(asset, standard)!));
    return { plan: null, states };
  }
  const batch = chooseBatch(turn, assets, standard);
  if (batch.length === 0) return { plan: null, states: [] };
  return planBatch(turn, { contract, standard, assets: batch });
}

interface MintBatch {
  readonly contract: string;
  readonly standard: TokenStandard;
  readonly assets: readonly MintStateRecord[];
}

async function planBatch(turn: LaneTurn, { contract, standard, assets }: MintBatch): Promise<Planned> {
  const { node, lane } = turn;
  const callOf = (batch: readonly MintStateRecord[]) => ({
    from: toHexText(lane.signer),
    to: contract,
    data: encodeMint(batch, standard),
  });
  const { mintable, refused } = await selectMintable(assets, (batch) => node.call(callOf(batch)));
  const states: MintStateRecord[] = [];
  for (const refusal of refused)
    for (const each of await classify(turn, refusal, callOf([refusal.asset]))) states.push(each);
  if (mintable.length === 0) return { plan: null, states };
  const fitting = await fitGas(turn, mintable, (batch) => node.gasOf(callOf(batch)));
  if (fitting.kind === 'none') return { plan: null, states: [...states, ...fitting.states] };
  const fees = chooseFees({ baseFee: turn.head.baseFee, priorityFee: await node.priorityFee() }, turn.rules);
  const wait = (reason: string): Planned => ({
    plan: null,
    states: [...states, ...changeAll(turn, fitting.assets, { stage: 'waiting', reason })],
  });
  if (fees === null) return wait('The chain requires higher fees than the maximum.');
  const plan = { ...fees, assets: fitting.assets, gas: fitting.gas, contractAddress: assets[0]!.contractAddress };
  if ((await node.balanceOf(toHexText(lane.signer))) < toReservedWei(turn) + BigInt(plan.gas) * fees.maxFeePerGas)
    return wait(`${toHexText(lane.signer)} does not have enough funds to pay for the transaction.`);
  return { plan: { ...plan, data: callOf(fitting.assets).data }, states };
}

/** Returns the new state for an asset that fails on its own. */
async function classify(
  turn: LaneTurn,
  { asset, outcome }: Refusal<MintStateRecord>,
  call: ContractCall,
): Promise<MintStateRecord[]> {
  const isTransient =
    outcome.kind === 'reverted'
      ? TRANSIENT_MESSAGES.test(outcome.message)
      : !(outcome.isCertain && (await isReproducible(turn, call)));
  if (isTransient) return changeAll(turn, [asset], { stage: 'waiting', reason: outcome.message });
  return fail(turn, [asset], outcome.message);
}

/** Whether a call keeps failing while the node responds to other requests. */
async function isReproducible({ node }: LaneTurn, call: ContractCall): Promise<boolean> {
  for (let at = 0; at < REPEATS; at++) {
    await node.chainId();
    const outcome = await node.call(call);
    if (outcome.kind !== 'unrunnable' || !outcome.isCertain) return false;
  }
  return true;
}

/** Returns the maximum cost in wei of transactions that are not in a block. */
function toReservedWei({ ledger }: LaneTurn): bigint {
  const newest = ledger.absentNonces.flatMap((nonce) => ledger.variantsOf(nonce).at(-1) ?? []);
  return newest.reduce((sum, { gasLimit, maxFeePerGas }) => sum + BigInt(gasLimit) * BigInt(maxFeePerGas), 0n);
}

const fail = (turn: LaneTurn, assets: readonly MintStateRecord[], error: string) =>
  changeAll(turn, assets, { status: 'failed', stage: 'settled', reason: null, error });

/** Chooses assets for one transaction. Omits tokens that an open transaction mints. */
function chooseBatch(
  { ledger, rules }: LaneTurn,
  assets: readonly MintStateRecord[],
  standard: TokenStandard,
): readonly MintStateRecord[] {
  // An ERC-1155 id can be minted any number of times.
  const open = standard === 'ERC1155' ? [] : ledger.openNonces.flatMap((nonce) => ledger.assetsOf(nonce));
  const openTokens = new Set(open.map(toTokenKey));
  const isFree = (asset: MintStateRecord) => asset.tokenId === null || !openTokens.has(toTokenKey(asset));
  const candidates = openTokens.size === 0 ? assets : assets.filter(isFree);
  const assetsMaxOf = (asset: MintStateRecord) => ASSETS_MAX_BY_TRIES[Math.min(ledger.triesOf(asset), TRIES_MAX - 1)]!;
  const [first] = candidates;
  if (first === undefined) return [];
  const [key, most] = [toFunctionKey(first, standard), assetsMaxOf(first)];
  return candidates
    .filter((asset) => toFunctionKey(asset, standard) === key && assetsMaxOf(asset) === most)
    .slice(0, Math.min(rules.assetsMax, most));
}

const toTokenKey = ({ contractAddress, tokenId }: MintStateRecord) => `${contractAddress.toString('hex')}:${tokenId}`;

type Fitting =
  | { readonly kind: 'fits'; readonly assets: readonly MintStateRecord[]; readonly gas: number }
  | { readonly kind: 'none'; readonly states: readonly MintStateRecord[] };

/** Halves the list until its gas is within the limit. */
async function fitGas(
  turn: LaneTurn,
  assets: readonly MintStateRecord[],
  estimate: (assets: readonly MintStateRecord[]) => Promise<CallOutcome<number>>,
): Promise<Fitting> {
  const { gasMax } = turn.rules;
  for (let batch = assets; ; batch = batch.slice(0, Math.ceil(batch.length / 2))) {
    const outcome = await estimate(batch);
    if (outcome.kind === 'unrunnable' && batch.length > 1) continue;
    // The chain has probably changed since the simulation.
    if (outcome.kind !== 'done')
      return { kind: 'none', states: changeAll(turn, batch, { stage: 'waiting', reason: outcome.message }) };
    const gas = Math.ceil(outcome.value * GAS_MARGIN);
    if (gas <= gasMax) return { kind: 'fits', assets: batch, gas };
    if (outcome.value <= gasMax) return { kind: 'fits', assets: batch, gas: gasMax };
    if (batch.length > 1) continue;
    const error = `Minting the asset takes ${outcome.value} gas, but the maximum is ${gasMax}.`;
    return { kind: 'none', states: fail(turn, batch, error) };
  }
}

async function findStandard({ node, lane }: LaneTurn, to: string): Promise<TokenStandard | null> {
  const supports = async (interfaceId: `0x${string}`) => {
    const data = encodeFunctionData({ abi: MINT_ABI, functionName: 'supportsInterface', args: [interfaceId] });
    return isTrueResult(await node.call({ from: toHexText(lane.signer), to, data }), 'supportsInterface');
  };
  if (await supports(ERC721_INTERFACE)) return 'ERC721';
  return (await supports(ERC1155_INTERFACE)) ? 'ERC1155' : null;
}

/** Also true for a contract without roles. The simulation then shows whether the contract allows minting. */
async function hasRole({ node, lane }: LaneTurn, to: string): Promise<boolean> {
  const args = [CONTRACT_ROLES.MINTER_ROLE, toHexText(lane.signer)] as const;
  const data = encodeFunctionData({ abi: MINT_ABI, functionName: 'hasRole', args });
  const outcome = await node.call({ from: toHexText(lane.signer), to, data });
  return outcome.kind !== 'done' || outcome.value === '0x' || isTrueResult(outcome, 'hasRole');
}

function isTrueResult(outcome: CallOutcome<string>, functionName: 'supportsInterface' | 'hasRole'): boolean {
  if (outcome.kind !== 'done' || outcome.value.length < 66) return false;
  return decodeFunctionResult({ abi: MINT_ABI, functionName, data: outcome.value as `0x${string}` });
}

interface Refusal<Asset> {
  readonly asset: Asset;
  readonly outcome: Exclude<CallOutcome<string>, { readonly kind: 'done' }>;
}

interface Selection<Asset> {
  /** Assets that can be minted together. */
  readonly mintable: readonly Asset[];
  /** Assets that fail even on their own. */
  readonly refused: readonly Refusal<Asset>[];
  /** Assets that conflict with `mintable` and need another transaction. */
  readonly conflicting: readonly Asset[];
}

/** Finds the assets that fit in one call by bisection. One bad asset in a hundred costs about fifteen calls. */
export async function selectMintable<Asset>(
  assets: readonly Asset[],
  simulate: (assets: readonly Asset[]) => Promise<CallOutcome<string>>,
): Promise<Selection<Asset>> {
  const mintable: Asset[] = [];
  const refused: Refusal<Asset>[] = [];
  const conflicting: Asset[] = [];
  const select = async (part: readonly Asset[]): Promise<void> => {
    if (part.length === 0) return;
    const outcome = await simulate([...mintable, ...part]);
    if (outcome.kind === 'done') {
      for (const each of part) mintable.push(each);
      return;
    }
    if (part.length > 1) {
      const half = Math.ceil(part.length / 2);
      await select(part.slice(0, half));
      return select(part.slice(half));
    }
    const single = mintable.length === 0 ? outcome : await simulate(part);
    if (single.kind === 'done') conflicting.push(part[0]!);
    else refused.push({ asset: part[0]!, outcome: single });
  };
  await select(assets);
  return { mintable, refused, conflicting };
}
