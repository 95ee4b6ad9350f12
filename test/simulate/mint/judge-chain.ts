import { setTimeout as delay } from 'node:timers/promises';
import { toUuidText } from '@playline/contracts';
import { readRanges, requestFromNodes } from '../../../services/operator/src/chain/read-ranges.ts';
import { type Activity, createReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { readForwards } from '../chain/readings.ts';
import type { ShownMint, ShownMints } from './lists.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

/** A token minted according to the logs of the chain. */
export interface ChainToken {
  readonly activityId: string;
  readonly contract: string;
  readonly transactionHash: string;
  readonly owner: string;
  readonly tokenId: string;
  readonly amount: string;
}

/** A block of the chain, and its time. */
export interface ChainPlace {
  readonly block: number;
  readonly timestampS: number;
}

const NEVER = new AbortController().signal;
/** Selectors of `ownerOf(uint256)` and `balanceOf(address,uint256)`. */
const [OWNER_OF, BALANCE_OF] = ['0x6352211e', '0x00fdd58e'];
const WORD_DIGITS = 64;

/** The latest block. @throws UnreachableError when no node answers */
export async function readHead({ options }: Pick<MintStage, 'options'>): Promise<ChainPlace> {
  const head = await requestFromNodes(options.nodes, (node) => node.block('latest'));
  if (head === null) throw new Error('the chain has no block');
  return { block: head.number, timestampS: head.timestampS };
}

/** All mints to the run's owners after a block, by any sender. */
export async function readChainTokens(stage: MintStage, from: ChainPlace): Promise<readonly ChainToken[]> {
  const { options, assets } = stage;
  const { chain, nodes, contracts } = options;
  const of = new Set<string>([contracts.erc721, contracts.erc1155]);
  const { block: to } = await readHead(stage);
  const tokens: ChainToken[] = [];
  const range = { chain, nodes, from: from.block, to, holds: [], stop: NEVER };
  for await (const { records } of readRanges(range))
    for (const { type, id, contractAddress, blockchainMetadata, details: text } of records) {
      const details = JSON.parse(text) as { to: string; amount: string; asset: { token_id?: string } };
      const contract = `0x${contractAddress?.toString('hex')}`;
      if (type !== 'mint' || !of.has(contract) || !assets.isOwner(details.to)) continue;
      tokens.push({
        activityId: toUuidText(id),
        contract,
        owner: details.to,
        amount: details.amount,
        transactionHash: `0x${blockchainMetadata?.transactionHash.toString('hex')}`,
        tokenId: details.asset.token_id ?? '',
      });
    }
  return tokens;
}

/**
 * Compares chain and interface: each minted request has exactly one log, and each log of the run's owners one request.
 */
export async function judgeChain(stage: MintStage, shown: ShownMints, tokens: readonly ChainToken[]): Promise<void> {
  const { differences } = stage;
  const left = new Map(tokens.map((token) => [token.activityId, token]));
  for (const request of succeededOf(shown)) {
    const { reference_id, activity_id } = request;
    const token = left.get(activity_id ?? '');
    left.delete(activity_id ?? '');
    if (token === undefined)
      differences.add('chain', `${reference_id} is shown as minted by ${activity_id}: no such log`);
    else for (const text of describeToken(token, request)) differences.add('chain', `${reference_id} ${text}`);
  }
  for (const { contract, tokenId, owner, transactionHash } of left.values())
    differences.add(
      'uninvited',
      `token ${tokenId} of ${contract} was minted for ${owner} in ${transactionHash}, and no request shows it`,
    );
  await judgeOwners(stage, shown);
}

export const succeededOf = (shown: ShownMints): readonly ShownMint[] =>
  [...shown.values()].filter(({ status }) => status === 'succeeded');

function describeToken(token: ChainToken, request: ShownMint): readonly string[] {
  const pairs = [
    ['contract', token.contract, request.collection_address],
    ['owner', token.owner, request.owner_address],
    ['token id', token.tokenId, request.token_id],
    ['amount', token.amount, request.amount ?? '1'],
    ['transaction', token.transactionHash, request.transaction_hash],
  ] as const;
  return pairs.flatMap(([name, logged, shown]) =>
    logged === shown ? [] : [`has ${name} ${logged} on the chain and is shown with ${shown}`],
  );
}

const toWord = (value: bigint) => value.toString(16).padStart(WORD_DIGITS, '0');

interface Holding {
  readonly name: string;
  readonly call: { readonly to: string; readonly data: string };
  readonly expected: bigint;
}

/** Asks the contracts for the owners, as a check that does not depend on logs. */
async function judgeOwners(stage: MintStage, shown: ShownMints): Promise<void> {
  const { options, differences } = stage;
  const holdings = listHoldings(stage, shown);
  if (holdings.length === 0) return;
  const calls = holdings.map(({ call }) => call);
  const answers = (await requestFromNodes(options.nodes, (node) => node.calls(calls))) ?? [];
  for (const [at, { name, expected }] of holdings.entries()) {
    const answer = answers[at] ?? null;
    const found = typeof answer !== 'string' || answer === '0x' ? null : BigInt(answer);
    if (found !== expected)
      differences.add('chain', `${name}: the contract says ${found?.toString(16)} and not ${expected.toString(16)}`);
  }
}

function listHoldings({ options }: MintStage, shown: ShownMints): readonly Holding[] {
  const { erc721, erc1155 } = options.contracts;
  const succeeded = succeededOf(shown).filter(({ token_id }) => token_id !== null);
  const single = succeeded.filter(({ collection_address }) => collection_address === erc721);
  const many = succeeded.filter(({ collection_address }) => collection_address === erc1155);
  const owners = single.map(({ reference_id, token_id, owner_address }) => ({
    name: `the owner of ${reference_id}`,
    call: { to: erc721, data: `${OWNER_OF}${toWord(BigInt(token_id!))}` },
    expected: BigInt(owner_address),
  }));
  const sums = [...Map.groupBy(many, ({ owner_address, token_id }) => `${owner_address} ${token_id}`)];
  const balances = sums.map(([name, requests]) => {
    const { owner_address, token_id } = requests[0]!;
    return {
      name: `the balance of ${name}`,
      call: { to: erc1155, data: `${BALANCE_OF}${toWord(BigInt(owner_address))}${toWord(BigInt(token_id!))}` },
      expected: requests.reduce((sum, { amount }) => sum + BigInt(amount ?? '1'), 0n),
    };
  });
  return [...owners, ...balances];
}

const PAGE_SIZE = 200;
const POLL_MS = 2_000;

/** What the history shows of a mint. */
interface ShownMintDetails {
  readonly to: unknown;
  readonly amount: unknown;
  readonly asset?: { readonly contract_address?: unknown; readonly token_id?: unknown };
}

/**
 * Compares the activity history with the chain: each token of the run is one mint in it. The indexer and the writer are
 * some seconds behind, so it is read until it is complete or has not changed for the time allowed.
 * @returns the number of mints of the run in it
 */
export async function judgeHistory(stage: MintStage, from: ChainPlace, tokens: readonly ChainToken[]): Promise<number> {
  const { differences } = stage;
  const activities = await awaitHistory(stage, from, tokens);
  for (const token of tokens) {
    const found = activities.get(token.activityId) ?? [];
    if (found.length === 0)
      differences.add('history', `${token.activityId} of token ${token.tokenId} is not in the history`);
    if (found.length > 1) differences.add('history', `${token.activityId} is ${found.length} times in the history`);
    for (const activity of found)
      for (const text of describeActivity(token, activity)) differences.add('history', `${token.activityId} ${text}`);
  }
  const known = new Set(tokens.map(({ activityId }) => activityId));
  for (const [id] of activities)
    if (!known.has(id)) differences.add('history', `${id} is in the history, and the chain has no such log`);
  return activities.size;
}

type Found = ReadonlyMap<string, readonly Activity[]>;

async function awaitHistory(stage: MintStage, from: ChainPlace, tokens: readonly ChainToken[]): Promise<Found> {
  let [count, changedAt] = [-1, performance.now()];
  for (;;) {
    const found = await readMints(stage, from);
    const missing = tokens.filter(({ activityId }) => !found.has(activityId)).length;
    stage.options.onProgress(`${found.size} mints of the run are in the history, ${missing} are missing`);
    if (missing === 0) return found;
    if (found.size !== count) [count, changedAt] = [found.size, performance.now()];
    if (performance.now() - changedAt > stage.options.settleIdleMaxMs) return found;
    await delay(POLL_MS);
  }
}

async function readMints(stage: MintStage, { timestampS }: ChainPlace): Promise<Found> {
  const { options, assets, api } = stage;
  const mints: Activity[] = [];
  for (const collection of COLLECTIONS) {
    const readHistory = createReadHistory({
      url: options.url,
      chain: options.chain.name,
      pageSize: PAGE_SIZE,
      patienceMs: options.settleIdleMaxMs,
      filters: {
        contract_address: options.contracts[collection],
        activity_type: 'mint',
        from_indexed_at: new Date(timestampS * 1_000).toISOString(),
      },
      onWait: (why, ms) => {
        options.onProgress(`${why}; asking again in ${(ms / 1_000).toFixed(1)} seconds`);
        if (why.includes('limit')) api.tally.refused++;
      },
    });
    for await (const { activities } of readForwards(readHistory, null, NEVER)) {
      api.tally.calls++;
      for (const each of activities.filter((activity) => assets.isOwner(String(detailsOf(activity).to))))
        mints.push(each);
    }
  }
  return Map.groupBy(mints, ({ id }) => id);
}

const detailsOf = (activity: Activity) => (activity as { details?: unknown }).details as ShownMintDetails;

function describeActivity(token: ChainToken, activity: Activity): readonly string[] {
  const { to, amount, asset } = detailsOf(activity);
  const place = (activity as { blockchain_metadata?: { transaction_hash?: unknown } | null }).blockchain_metadata;
  const pairs = [
    ['to', to, token.owner],
    ['amount', amount, token.amount],
    ['contract_address', asset?.contract_address, token.contract],
    ['token_id', asset?.token_id, token.tokenId],
    ['transaction_hash', place?.transaction_hash, token.transactionHash],
  ] as const;
  return pairs.flatMap(([name, shown, logged]) => (shown === logged ? [] : [`has ${name} ${shown} and not ${logged}`]));
}
