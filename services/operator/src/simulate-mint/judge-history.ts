import { setTimeout as delay } from 'node:timers/promises';
import { type Activity, createReadHistory } from '../replicate/history.ts';
import { readForwards } from '../simulate-chain/walks.ts';
import type { ChainPlace, ChainToken } from './judge-chain.ts';
import { COLLECTIONS, type MintStage } from './stage.ts';

const PAGE_SIZE = 200;
const POLL_MS = 2_000;
const NEVER = new AbortController().signal;

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
  return pairs.flatMap(([name, told, logged]) => (told === logged ? [] : [`has ${name} ${told} and not ${logged}`]));
}
