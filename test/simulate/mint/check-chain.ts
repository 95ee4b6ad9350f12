import { setTimeout as delay } from 'node:timers/promises';
import { toUuidText } from '@playline/contracts';
import { readRanges, requestFromNodes } from '../../../services/operator/src/chain/read-ranges.ts';
import { type Activity, createReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { readForwards } from '../chain/replica.ts';
import { describeDifferences } from '../report.ts';
import type { ShownMint, ShownMints } from './lists.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

export interface ChainToken {
  readonly activityId: string;
  readonly contract: string;
  readonly transactionHash: string;
  readonly owner: string;
  readonly tokenId: string;
  readonly amount: string;
}

export type ChainPosition = Awaited<ReturnType<typeof readHead>>;

const NEVER = new AbortController().signal;
/** Selectors of `ownerOf(uint256)` and `balanceOf(address,uint256)`. */
const [OWNER_OF, BALANCE_OF] = ['0x6352211e', '0x00fdd58e'];
const WORD_DIGITS = 64;

export async function readHead({ options }: Pick<MintStage, 'options'>) {
  const head = await requestFromNodes(options.nodes, (node) => node.block('latest'));
  if (head === null) throw new Error('the chain has no block');
  return { block: head.number, timestampS: head.timestampS };
}

export async function readChainTokens(stage: MintStage, from: ChainPosition): Promise<readonly ChainToken[]> {
  const { options, assets } = stage;
  const { chain, nodes, contracts } = options;
  const contractSet = new Set<string>([contracts.erc721, contracts.erc1155]);
  const { block: to } = await readHead(stage);
  const tokens: ChainToken[] = [];
  const range = { chain, nodes, from: from.block, to, requiredBlocks: [], stop: NEVER };
  for await (const { records } of readRanges(range))
    for (const { type, id, contractAddress, blockchainMetadata, details: text } of records) {
      const details = JSON.parse(text) as { to: string; amount: string; asset: { token_id?: string } };
      const contract = `0x${contractAddress?.toString('hex')}`;
      if (type !== 'mint' || !contractSet.has(contract) || !assets.isOwner(details.to)) continue;
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

/** Compares the chain with the API: each minted request must have exactly one log, and each log exactly one request. */
export async function checkChain(stage: MintStage, shown: ShownMints, tokens: readonly ChainToken[]): Promise<void> {
  const { differences } = stage;
  const unmatched = new Map(tokens.map((token) => [token.activityId, token]));
  for (const request of succeededOf(shown)) {
    const { reference_id, activity_id } = request;
    const token = unmatched.get(activity_id ?? '');
    unmatched.delete(activity_id ?? '');
    if (token === undefined)
      differences.add(
        'chain',
        `according to the API, ${reference_id} has activity ${activity_id}, but the chain has no log for it`,
      );
    else
      for (const text of describeDifferences(toToken(request), token))
        differences.add('chain', `${reference_id} ${text}`);
  }
  for (const { contract, tokenId, owner, transactionHash } of unmatched.values())
    differences.add(
      'uninvited',
      `token ${tokenId} of ${contract} was minted for ${owner} in ${transactionHash}, but was never requested`,
    );
  await checkOwners(stage, shown);
}

export const succeededOf = (shown: ShownMints): readonly ShownMint[] =>
  [...shown.values()].filter(({ status }) => status === 'succeeded');

export const toToken = (request: ShownMint): ChainToken => ({
  activityId: request.activity_id ?? '',
  contract: request.collection_address,
  owner: request.owner_address,
  transactionHash: request.transaction_hash ?? '',
  tokenId: request.token_id ?? '',
  amount: request.amount ?? '1',
});

const toWord = (value: bigint) => value.toString(16).padStart(WORD_DIGITS, '0');

/** Reads the owners from the contracts, independently of the logs. */
async function checkOwners(stage: MintStage, shown: ShownMints): Promise<void> {
  const { options, differences } = stage;
  const holdings = listHoldings(stage, shown);
  if (holdings.length === 0) return;
  const calls = holdings.map(({ call }) => call);
  const results = (await requestFromNodes(options.nodes, (node) => node.calls(calls))) ?? [];
  for (const [index, { name, expected }] of holdings.entries()) {
    const result = results[index] ?? null;
    const found = typeof result !== 'string' || result === '0x' ? null : BigInt(result);
    if (found !== expected)
      differences.add(
        'chain',
        `${name}: the contract returns ${found?.toString(16)} instead of ${expected.toString(16)}`,
      );
  }
}

function listHoldings({ options }: MintStage, shown: ShownMints) {
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

/**
 * Compares the activity history with the chain: each of the run's tokens must have one mint. The history lags by a few
 * seconds, so it is polled until it is complete or has not changed for `settleIdleMaxMs`.
 * @returns the number of mints in the history
 */
export async function checkHistory(stage: MintStage, from: ChainPosition, tokens: readonly ChainToken[]) {
  const { differences } = stage;
  const activities = await awaitHistory(stage, from, tokens);
  for (const token of tokens) {
    const found = activities.get(token.activityId) ?? [];
    if (found.length === 0)
      differences.add('history', `${token.activityId} for token ${token.tokenId} is not in the history`);
    if (found.length > 1) differences.add('history', `${token.activityId} is in the history ${found.length} times`);
    for (const activity of found)
      for (const text of describeActivity(token, activity)) differences.add('history', `${token.activityId} ${text}`);
  }
  const known = new Set(tokens.map(({ activityId }) => activityId));
  for (const [id] of activities)
    if (!known.has(id)) differences.add('history', `${id} is in the history, but the chain has no log for it`);
  return activities.size;
}

type Found = ReadonlyMap<string, readonly Activity[]>;

async function awaitHistory(stage: MintStage, from: ChainPosition, tokens: readonly ChainToken[]): Promise<Found> {
  let [count, changedAt] = [-1, performance.now()];
  for (;;) {
    const found = await readMints(stage, from);
    const missing = tokens.filter(({ activityId }) => !found.has(activityId)).length;
    stage.options.onProgress(`${found.size} of the run's mints are in the history, ${missing} are missing`);
    if (missing === 0) return found;
    if (found.size !== count) [count, changedAt] = [found.size, performance.now()];
    if (performance.now() - changedAt > stage.options.settleIdleMaxMs) return found;
    await delay(POLL_MS);
  }
}

async function readMints(stage: MintStage, { timestampS }: ChainPosition): Promise<Found> {
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
        options.onProgress(`${why}; retrying in ${(ms / 1_000).toFixed(1)} seconds`);
        if (why.includes('limit')) api.tally.refused++;
      },
    });
    for await (const { activities } of readForwards(readHistory, null, NEVER)) {
      api.tally.calls++;
      mints.push(...activities.filter((activity) => assets.isOwner(String(detailsOf(activity).to))));
    }
  }
  return Map.groupBy(mints, ({ id }) => id);
}

const detailsOf = (activity: Activity) =>
  (activity as { details?: unknown }).details as {
    to: unknown;
    amount: unknown;
    asset?: { contract_address?: unknown; token_id?: unknown };
  };

function describeActivity(token: ChainToken, activity: Activity): readonly string[] {
  const { to, amount, asset } = detailsOf(activity);
  const metadata = (activity as { blockchain_metadata?: { transaction_hash?: unknown } | null }).blockchain_metadata;
  return describeDifferences(token, {
    activityId: activity.id,
    owner: to,
    amount,
    contract: asset?.contract_address,
    tokenId: asset?.token_id,
    transactionHash: metadata?.transaction_hash,
  });
}
