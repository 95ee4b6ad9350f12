import { CONTRACT_ROLES } from '@playline/access-keys';
import { type MintStateRecord, toHexText } from '@playline/contracts';
import { decodeFunctionResult, encodeFunctionData } from 'viem/utils';
import {
  ERC721_INTERFACE,
  ERC1155_INTERFACE,
  encodeMint,
  MINT_ABI,
  validationErrorOf,
  type TokenStandard,
  toFunctionKey,
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
  /** Of assets that failed or wait. */
  readonly states: readonly MintStateRecord[];
}

/** The chain may change after the estimate. */
const GAS_MARGIN = 1.25;
/** By the most nonces of one of them: after reverts an asset shares with fewer. */
const ASSETS_MAX_BY_TRIES = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 10, 1, 1];
/** A node's fault must never fail an asset. */
const REPEATS = 2;
/** An administrator can remove the cause. */
const TRANSIENT_MESSAGES = /^AccessControl|^EnforcedPause|paused/;

/** @param assets pending ones without a nonce, in order; not empty */
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
  if (!(await hasRole(turn, contract))) return waits(`${toHexText(lane.signer)} has no MINTER_ROLE of the contract.`);
  const mistaken = assets.filter((asset) => validationErrorOf(asset, standard) !== null);
  if (mistaken.length > 0) {
    const states = mistaken.flatMap((asset) => fail(turn, [asset], validationErrorOf(asset, standard)!));
    return { plan: null, states };
  }
  const together = chooseTogether(turn, assets, standard);
  if (together.length === 0) return { plan: null, states: [] };
  return planTogether(turn, { contract, standard, assets: together });
}

interface Together {
  readonly contract: string;
  readonly standard: TokenStandard;
  readonly assets: readonly MintStateRecord[];
}

async function planTogether(turn: LaneTurn, { contract, standard, assets }: Together): Promise<Planned> {
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
  if ((await node.balanceOf(toHexText(lane.signer))) < promisedBy(turn) + BigInt(plan.gas) * fees.maxFeePerGas)
    return wait(`${toHexText(lane.signer)} has not enough funds to pay for the transaction.`);
  return { plan: { ...plan, data: callOf(fitting.assets).data }, states };
}

/** Change of an asset that fails alone. */
async function classify(
  turn: LaneTurn,
  { asset, answer }: Refusal<MintStateRecord>,
  call: ContractCall,
): Promise<MintStateRecord[]> {
  const isPassing =
    answer.kind === 'reverted'
      ? TRANSIENT_MESSAGES.test(answer.message)
      : !(answer.isSure && (await repeats(turn, call)));
  if (isPassing) return changeAll(turn, [asset], { stage: 'waiting', reason: answer.message });
  return fail(turn, [asset], answer.message);
}

/** Whether a call keeps failing while the node answers other requests. */
async function repeats({ node }: LaneTurn, call: ContractCall): Promise<boolean> {
  for (let at = 0; at < REPEATS; at++) {
    await node.chainId();
    const answer = await node.call(call);
    if (answer.kind !== 'unrunnable' || !answer.isSure) return false;
  }
  return true;
}

/** wei that transactions in no block may cost. */
function promisedBy({ ledger }: LaneTurn): bigint {
  const newest = ledger.absentNonces.flatMap((nonce) => ledger.variantsOf(nonce).at(-1) ?? []);
  return newest.reduce((sum, { gasLimit, maxFeePerGas }) => sum + BigInt(gasLimit) * BigInt(maxFeePerGas), 0n);
}

const fail = (turn: LaneTurn, assets: readonly MintStateRecord[], error: string) =>
  changeAll(turn, assets, { status: 'failed', stage: 'settled', reason: null, error });

/** Without tokens that an open transaction mints. */
function chooseTogether(
  { ledger, rules }: LaneTurn,
  assets: readonly MintStateRecord[],
  standard: TokenStandard,
): readonly MintStateRecord[] {
  // An ERC-1155 id can be minted any number of times.
  const open = standard === 'ERC1155' ? [] : ledger.openNonces.flatMap((nonce) => ledger.assetsOf(nonce));
  const made = new Set(open.map(toTokenKey));
  const isFree = (asset: MintStateRecord) => asset.tokenId === null || !made.has(toTokenKey(asset));
  const free = made.size === 0 ? assets : assets.filter(isFree);
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
    const answer = await estimate(some);
    if (answer.kind === 'unrunnable' && some.length > 1) continue;
    // The chain has probably changed since the simulation.
    if (answer.kind !== 'done')
      return { kind: 'none', states: changeAll(turn, some, { stage: 'waiting', reason: answer.message }) };
    const gas = Math.ceil(answer.value * GAS_MARGIN);
    if (gas <= gasMax) return { kind: 'fits', assets: some, gas };
    if (answer.value <= gasMax) return { kind: 'fits', assets: some, gas: gasMax };
    if (some.length > 1) continue;
    const error = `Minting it takes ${answer.value} gas, and a transaction may take ${gasMax}.`;
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

/** For contracts without roles the simulation decides. */
async function hasRole({ node, lane }: LaneTurn, to: string): Promise<boolean> {
  const args = [CONTRACT_ROLES.MINTER_ROLE, toHexText(lane.signer)] as const;
  const data = encodeFunctionData({ abi: MINT_ABI, functionName: 'hasRole', args });
  const answer = await node.call({ from: toHexText(lane.signer), to, data });
  return answer.kind !== 'done' || answer.value === '0x' || isYes(answer, 'hasRole');
}

function isYes(answer: CallOutcome<string>, functionName: 'supportsInterface' | 'hasRole'): boolean {
  if (answer.kind !== 'done' || answer.value.length < 66) return false;
  return decodeFunctionResult({ abi: MINT_ABI, functionName, data: answer.value as `0x${string}` });
}

interface Refusal<Asset> {
  readonly asset: Asset;
  readonly answer: Exclude<CallOutcome<string>, { readonly kind: 'done' }>;
}

interface Selection<Asset> {
  /** Together in one transaction. */
  readonly mintable: readonly Asset[];
  /** Each fails alone. */
  readonly refused: readonly Refusal<Asset>[];
  /** Not with the others: for another transaction. */
  readonly later: readonly Asset[];
}

/** Finds by halving what can be minted together: one bad asset among a hundred costs some fifteen calls. */
export async function selectMintable<Asset>(
  assets: readonly Asset[],
  simulate: (assets: readonly Asset[]) => Promise<CallOutcome<string>>,
): Promise<Selection<Asset>> {
  const mintable: Asset[] = [];
  const refused: Refusal<Asset>[] = [];
  const later: Asset[] = [];
  const judge = async (part: readonly Asset[]): Promise<void> => {
    if (part.length === 0) return;
    const answer = await simulate([...mintable, ...part]);
    if (answer.kind === 'done') {
      for (const each of part) mintable.push(each);
      return;
    }
    if (part.length > 1) {
      const half = Math.ceil(part.length / 2);
      await judge(part.slice(0, half));
      return judge(part.slice(half));
    }
    const alone = mintable.length === 0 ? answer : await simulate(part);
    if (alone.kind === 'done') later.push(part[0]!);
    else refused.push({ asset: part[0]!, answer: alone });
  };
  await judge(assets);
  return { mintable, refused, later };
}
