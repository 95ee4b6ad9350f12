import { setTimeout as delay } from 'node:timers/promises';
import { createPace } from '../delivery.ts';
import { type RequestedAsset, THRESHOLD } from './assets.ts';
import {
  awaitEnd,
  type FirstCursors,
  findFirstCursor,
  playForeignCursors,
  playLists,
  readMint,
  type ShownMints,
} from './lists.ts';
import { createRefreshes } from './metadata.ts';
import { createProbe, sendConflict, sendOrder } from './orders.ts';
import { COLLECTIONS, isOver, type MintStage } from './stage.ts';

/** Shares of all assets that are requested without the role, and after the first ones have ended. */
const SHARES = { withoutRole: 0.1, afterwards: 0.15 };
const ROUND_ASSETS = 20;
const ORDER_ASSETS_MAX = 12;
const RIVALS_SHARE = 0.3;
const PROBES_A_ROUND = 3;
const POLL_MS = 500;

export async function playMints(stage: MintStage) {
  const { options, book } = stage;
  const { assetsMax, log } = options;
  const game = await begin(stage);
  const { from, refreshes } = game;
  const withoutRole = Math.max(1, Math.round(assetsMax * SHARES.withoutRole));
  const first = assetsMax - withoutRole - Math.round(assetsMax * SHARES.afterwards);
  await playRounds(game, Math.ceil(first / 2));
  if (!isOver(stage)) await playWithoutRole(game, withoutRole);
  await playRounds(game, first + withoutRole);
  if (!isOver(stage)) await playForeignCursors(stage);
  log(`${book.accepted} assets are accepted; waiting until each is a token or has failed`);
  const shown = await awaitEnd(stage, from, new Set());
  if (isOver(stage)) return { shown, from, refreshes };
  const again = await playAfterwards(game, shown);
  log('waiting for the repeated and the late requests');
  return { shown: await awaitEnd(stage, from, again), from, refreshes };
}

/** Requests one asset of each collection alone, so that it is the run's first. */
async function begin(stage: MintStage) {
  const from: { -readonly [K in keyof FirstCursors]: FirstCursors[K] } = { erc721: null, erc1155: null };
  for (const collection of COLLECTIONS) {
    await sendOrder(stage, [stage.assets.good(collection)]);
    from[collection] = await findFirstCursor(stage, collection);
  }
  const pace = createPace(stage.options.rate);
  return { stage, pace, probe: createProbe(stage), refreshes: createRefreshes(stage), from };
}
type MintGame = Awaited<ReturnType<typeof begin>>;

async function playRounds(game: MintGame, acceptedMax: number): Promise<void> {
  const { stage, pace } = game;
  for (let left = acceptedMax - stage.book.accepted; left > 0 && !isOver(stage); ) {
    const count = Math.min(left, ROUND_ASSETS);
    await pace.due(count);
    await playRound(game, count);
    left -= count;
    stage.options.onProgress(
      `${stage.book.accepted} assets are accepted, ${stage.counts.probes} calls were refused as expected`,
    );
  }
}

/** A burst of requests, requests that must be refused, and reads of the lists while they grow. */
async function playRound({ stage, probe, refreshes, from }: MintGame, count: number): Promise<void> {
  const { random, assets } = stage;
  const requested = await burst(stage, drawAssets(stage, count));
  const sure = requested.filter(({ expected }) => expected.kind === 'token');
  const known = sure.filter(({ referenceId }) => (stage.book.find(referenceId)?.attemptsMin ?? 0) > 0);
  if (known.length > 0) await playConflicts(stage, random.pick(known));
  for (let probes = 0; probes < PROBES_A_ROUND; probes++) await probe();
  await refreshes.play();
  const collection = random.pick(COLLECTIONS);
  await playLists(stage, collection, from[collection]);
  const twice = assets.good();
  const { referenceId } = twice;
  const order = { assets: [twice, { ...assets.good(twice.collection), referenceId }], taken: [referenceId] };
  await sendConflict(stage, { ...order, name: 'a reference id twice in an order', fresh: [referenceId] });
}

/** Repeats the reference id of a pending or minted asset: unchanged, with another asset, and beside a new one. */
async function playConflicts(stage: MintStage, asset: RequestedAsset): Promise<void> {
  const { referenceId, collection } = asset;
  const taken = [referenceId];
  const other = { ...stage.assets.good(collection), referenceId };
  await sendConflict(stage, { name: 'the same asset again', assets: [asset], taken, fresh: [] });
  await sendConflict(stage, { name: 'another asset under its id', assets: [other], taken, fresh: [] });
  const fresh = stage.assets.good(collection);
  await sendConflict(stage, {
    name: 'a taken one beside a fresh one',
    assets: [fresh, asset],
    taken,
    fresh: [fresh.referenceId],
  });
}

function drawAssets({ assets, random, options }: MintStage, count: number): readonly RequestedAsset[] {
  const drawn: RequestedAsset[] = count > 2 && random.chance(RIVALS_SHARE) ? [...assets.rivals()] : [];
  while (drawn.length < count) drawn.push(random.chance(options.brokenShare) ? assets.bad() : assets.good());
  return random.shuffle(drawn);
}

async function burst(stage: MintStage, assets: readonly RequestedAsset[]): Promise<readonly RequestedAsset[]> {
  const orders: RequestedAsset[][] = [];
  for (const collection of COLLECTIONS) {
    const own = assets.filter((asset) => asset.collection === collection);
    while (own.length > 0) orders.push(own.splice(0, stage.random.integer(1, ORDER_ASSETS_MAX)));
  }
  await Promise.all(orders.map((order) => sendOrder(stage, order)));
  return assets;
}

/** Without MINTER_ROLE all requests must wait and none may fail; afterwards they must continue on their own. */
async function playWithoutRole(game: MintGame, count: number): Promise<void> {
  const { stage } = game;
  const { options, counts, differences } = stage;
  options.log('MINTER_ROLE is revoked from the signer: new requests must wait');
  try {
    await options.role.revoke();
    const requested = await burst(stage, drawAssets(stage, count));
    counts.withoutRole += requested.length;
    counts.waitedForRole = await awaitWaiting(stage);
    if (counts.waitedForRole === 0)
      differences.add('role', 'the minter reported of no asset that it waits for MINTER_ROLE');
    for (const { referenceId, collection } of requested) {
      if (stage.book.find(referenceId)?.attemptsMin !== 1) continue;
      const status = (await readMint(stage, collection, referenceId))?.result[0]?.status;
      if (status !== undefined && status !== 'pending')
        differences.add('role', `${referenceId} is ${status} while the signer has no MINTER_ROLE`);
    }
  } finally {
    await options.role.grant();
    options.log(`MINTER_ROLE is granted again; ${counts.waitedForRole} assets have waited for it`);
  }
}

async function awaitWaiting({ rows, options }: MintStage): Promise<number> {
  const endAt = performance.now() + options.settleIdleMaxMs;
  for (;;) {
    const waiting = await rows.waitingForRole();
    if (waiting > 0 || performance.now() > endAt || options.stop.aborted) return waiting;
    await delay(POLL_MS);
  }
}

/**
 * Requests again after the first results: minted assets, their token ids, and failed ones.
 * @returns the reference ids
 */
async function playAfterwards({ stage, probe }: MintGame, shown: ShownMints): Promise<ReadonlySet<string>> {
  const { assets, book, random, options, counts } = stage;
  const ofStatus = (status: string) =>
    random.shuffle(book.entries().filter(({ asset }) => shown.get(asset.referenceId)?.status === status));
  const [minted, failed] = [ofStatus('succeeded'), ofStatus('failed')];
  const count = Math.max(2, options.assetsMax - book.accepted);
  options.log(`requesting again: ${minted.length} are minted, ${failed.length} have failed`);
  for (const { asset } of minted.slice(0, 3)) await playConflicts(stage, asset);
  const ids = minted.flatMap(({ asset: { referenceId, collection } }) => {
    const { token_id: tokenId } = shown.get(referenceId)!;
    const isChosen = tokenId !== null && BigInt(tokenId) < THRESHOLD;
    return collection === 'erc721' && isChosen ? [{ ...book.find(referenceId)!.asset, tokenId }] : [];
  });
  const corrected = failed.slice(0, Math.ceil(count / 2)).map(({ asset }) => assets.corrected(asset));
  const taken = ids.slice(0, count - corrected.length).map((asset) => assets.taken(asset));
  const again = new Set(corrected.map(({ referenceId }) => referenceId));
  counts.again += again.size;
  await burst(stage, [...corrected, ...taken]);
  await probe();
  return again;
}
