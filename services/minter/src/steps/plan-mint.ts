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
  /** null: nothing can be sent now. */
  readonly plan: MintPlan | null;
  /** New states of assets that failed or wait. */
  readonly states: readonly MintStateRecord[];
}

/** The chain may change after the estimate. */
const GAS_MARGIN = 1.25;
/** Assets per transaction, by nonces used before: after reverts, an asset shares with fewer assets. */
const ASSETS_MAX_BY_TRIES = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 10, 1, 1];
/** A node's fault must never fail an asset. */
const REPEATS = 2;
/** An administrator can remove the cause. */
const TRANSIENT_MESSAGES = /^AccessControl|^EnforcedPause|paused/;

/** @param assets pending assets without a nonce, in order; not empty */
export async function planMint(turn: LaneTurn, assets: readonly MintStateRecord[]): Promise<Planned> {
  const { lane, signer } = turn;
  const waits = (reason: string, all = assets): Planned => ({
    plan: null,
    states: changeAll(turn, all, { stage: 'waiting', reason }),
  });
  const status = signer.status(assets[0]!.environmentId);
  if (status.kind === 'waits') return waits(status.reason);
  const contract = toHexText(assets[0]!.contractAddress);
  const standard = await findStandard(turn, contract);
  if (standard === null) return waits('The contract is neither ERC-721 nor ERC-1155.');
  if (!(await hasRole(turn, contract))) return waits(`${toHexText(lane.signer)} has no MINTER_ROLE on the contract.`);
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
  const callOf = (some: readonly MintStateRecord[]) => ({
    from: toHexText(lane.signer),
    to: contract,
    data: encodeMint(some, standard),
  });
  const { mintable, refused } = await selectMintable(assets, (some) => node.call(callOf(some)));
  const states: MintStateRecord[] = [];
  for (const refusal of refused)
    for (const each of await classify(turn, refusal, callOf([refusal.asset]))) states.push(each);
  if (mintable.length === 0) return { plan: null, states };
  const fitting = await fitGas(turn, mintable, (some) => node.gasOf(callOf(some)));
  if (fitting.kind === 'none') return { plan: null, states: [...states, ...fitting.states] };
  const fees = chooseFees({ baseFee: turn.head.baseFee, priorityFee: await node.priorityFee() }, turn.rules);
  const wait = (reason: string): Planned => ({
    plan: null,
    states: [...states, ...changeAll(turn, fitting.assets, { stage: 'waiting', reason })],
  });
  if (fees === null) return wait('The chain requires higher fees than the maximum.');
  const plan = { ...fees, assets: fitting.assets, gas: fitting.gas, contractAddress: assets[0]!.contractAddress };
  if ((await node.balanceOf(toHexText(lane.signer))) < reservedBy(turn) + BigInt(plan.gas) * fees.maxFeePerGas)
    return wait(`${toHexText(lane.signer)} has not enough funds to pay for the transaction.`);
  return { plan: { ...plan, data: callOf(fitting.assets).data }, states };
}

/** State change for an asset that fails alone. */
async function classify(
  turn: LaneTurn,
  { asset, outcome }: Refusal<MintStateRecord>,
  call: ContractCall,
): Promise<MintStateRecord[]> {
  const isPassing =
    outcome.kind === 'reverted'
      ? TRANSIENT_MESSAGES.test(outcome.message)
      : !(outcome.isSure && (await repeats(turn, call)));
  if (isPassing) return changeAll(turn, [asset], { stage: 'waiting', reason: outcome.message });
  return fail(turn, [asset], outcome.message);
}

/** Whether a call keeps failing while the node serves other requests. */
async function repeats({ node }: LaneTurn, call: ContractCall): Promise<boolean> {
  for (let at = 0; at < REPEATS; at++) {
    await node.chainId();
    const outcome = await node.call(call);
    if (outcome.kind !== 'unrunnable' || !outcome.isSure) return false;
  }
  return true;
}

/** wei that transactions outside of blocks may cost. */
function reservedBy({ ledger }: LaneTurn): bigint {
  const newest = ledger.absentNonces.flatMap((nonce) => ledger.variantsOf(nonce).at(-1) ?? []);
  return newest.reduce((sum, { gasLimit, maxFeePerGas }) => sum + BigInt(gasLimit) * BigInt(maxFeePerGas), 0n);
}

const fail = (turn: LaneTurn, assets: readonly MintStateRecord[], error: string) =>
  changeAll(turn, assets, { status: 'failed', stage: 'settled', reason: null, error });

/** Omits tokens that an open transaction mints. */
function chooseBatch(
  { ledger, rules }: LaneTurn,
  assets: readonly MintStateRecord[],
  standard: TokenStandard,
): readonly MintStateRecord[] {
  // An ERC-1155 id can be minted any number of times.
  const open = standard === 'ERC1155' ? [] : ledger.openNonces.flatMap((nonce) => ledger.assetsOf(nonce));
  const open721 = new Set(open.map(toTokenKey));
  const isFree = (asset: MintStateRecord) => asset.tokenId === null || !open721.has(toTokenKey(asset));
  const free = open721.size === 0 ? assets : assets.filter(isFree);
  const mostOf = (asset: MintStateRecord) => ASSETS_MAX_BY_TRIES[Math.min(ledger.triesOf(asset), TRIES_MAX - 1)]!;
  const [first] = free;
  if (first === undefined) return [];
  const [key, most] = [toFunctionKey(first, standard), mostOf(first)];
  return free
    .filter((asset) => toFunctionKey(asset, standard) === key && mostOf(asset) === most)
    .slice(0, Math.min(rules.assetsMax, most));
}

const toTokenKey = ({ contractAddress, tokenId }: MintStateRecord) => `${contractAddress.toString('hex')}:${tokenId}`;

type Fitting =
  | { readonly kind: 'fits'; readonly assets: readonly MintStateRecord[]; readonly gas: number }
  | { readonly kind: 'none'; readonly states: readonly MintStateRecord[] };

/** Halves the list until its gas is allowed. */
async function fitGas(
  turn: LaneTurn,
  assets: readonly MintStateRecord[],
  estimate: (assets: readonly MintStateRecord[]) => Promise<CallOutcome<number>>,
): Promise<Fitting> {
  const { gasMax } = turn.rules;
  for (let some = assets; ; some = some.slice(0, Math.ceil(some.length / 2))) {
    const outcome = await estimate(some);
    if (outcome.kind === 'unrunnable' && some.length > 1) continue;
    // The chain has probably changed since the simulation.
    if (outcome.kind !== 'done')
      return { kind: 'none', states: changeAll(turn, some, { stage: 'waiting', reason: outcome.message }) };
    const gas = Math.ceil(outcome.value * GAS_MARGIN);
    if (gas <= gasMax) return { kind: 'fits', assets: some, gas };
    if (outcome.value <= gasMax) return { kind: 'fits', assets: some, gas: gasMax };
    if (some.length > 1) continue;
    const error = `Minting the asset takes ${outcome.value} gas, but the maximum is ${gasMax}.`;
    return { kind: 'none', states: fail(turn, some, error) };
  }
}

async function findStandard({ node, lane }: LaneTurn, to: string): Promise<TokenStandard | null> {
  const supports = async (interfaceId: `0x${string}`) => {
    const data = encodeFunctionData({ abi: MINT_ABI, functionName: 'supportsInterface', args: [interfaceId] });
    return isYes(await node.call({ from: toHexText(lane.signer), to, data }), 'supportsInterface');
  };
  if (await supports(ERC721_INTERFACE)) return 'ERC721';
  return (await supports(ERC1155_INTERFACE)) ? 'ERC1155' : null;
}

/** For contracts without roles, the simulation decides. */
async function hasRole({ node, lane }: LaneTurn, to: string): Promise<boolean> {
  const args = [CONTRACT_ROLES.MINTER_ROLE, toHexText(lane.signer)] as const;
  const data = encodeFunctionData({ abi: MINT_ABI, functionName: 'hasRole', args });
  const outcome = await node.call({ from: toHexText(lane.signer), to, data });
  return outcome.kind !== 'done' || outcome.value === '0x' || isYes(outcome, 'hasRole');
}

function isYes(outcome: CallOutcome<string>, functionName: 'supportsInterface' | 'hasRole'): boolean {
  if (outcome.kind !== 'done' || outcome.value.length < 66) return false;
  return decodeFunctionResult({ abi: MINT_ABI, functionName, data: outcome.value as `0x${string}` });
}

interface Refusal<Asset> {
  readonly asset: Asset;
  readonly outcome: Exclude<CallOutcome<string>, { readonly kind: 'done' }>;
}

interface Selection<Asset> {
  /** Assets that fit in one transaction. */
  readonly mintable: readonly Asset[];
  /** Assets that fail alone. */
  readonly refused: readonly Refusal<Asset>[];
  /** Assets that conflict with `mintable`, for another transaction. */
  readonly later: readonly Asset[];
}

/** Bisects the assets to find those that fit in one call: one bad asset in a hundred costs some fifteen calls. */
export async function selectMintable<Asset>(
  assets: readonly Asset[],
  simulate: (assets: readonly Asset[]) => Promise<CallOutcome<string>>,
): Promise<Selection<Asset>> {
  const mintable: Asset[] = [];
  const refused: Refusal<Asset>[] = [];
  const later: Asset[] = [];
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
    const alone = mintable.length === 0 ? outcome : await simulate(part);
    if (alone.kind === 'done') later.push(part[0]!);
    else refused.push({ asset: part[0]!, outcome: alone });
  };
  await select(assets);
  return { mintable, refused, later };
}
