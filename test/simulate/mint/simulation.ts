import { setTimeout as delay } from 'node:timers/promises';
import { grantCallsOf } from '@playline/access-keys';
import type { CallNode } from '@playline/chain';
import { createRandom } from '@playline/testkit/random';
import { createPace } from '../delivery.ts';
import { createDifferences, createLatency, type Latency, quantilesOf, type RunReport, round } from '../report.ts';
import { createRun } from '../run.ts';
import { createAssetFactory, createMintLedger, type RequestedAsset, referencePrefix, THRESHOLD } from './assets.ts';
import { checkChain, checkHistory, readChainTokens, readHead, succeededOf } from './check-chain.ts';
import { checkOutcomes, checkReads, checkRows, createMintRows } from './check-requests.ts';
import {
  awaitEnd,
  type FirstCursors,
  findFirstCursor,
  playForeignCursors,
  playLists,
  readMint,
  type ShownMints,
} from './lists.ts';
import { checkMetadata, createProbe, createRefreshes, requestAssets, sendConflict } from './requests.ts';
import {
  COLLECTIONS,
  createCounts,
  isOver,
  type MintDifferenceKind,
  type MintSimulationOptions,
  type MintStage,
  openMintApi,
} from './stage.ts';

export type MinterRole = ReturnType<typeof createMinterRole>;

/** Selectors of `revokeRole(bytes32,address)` and `hasRole(bytes32,address)`. */
const REVOKE_ROLE = '0xd547741f';
const HAS_ROLE = '0x91d14854';
const SELECTOR_DIGITS = 10;
const POLL_MS = 250;
const BLOCK_MAX_MS = 60_000;

/** Grants and revokes roles through the local stack's node, which signs for the demo contracts' administrator. */
export function createMinterRole(call: CallNode, signer: string, contracts: readonly string[]) {
  const callsOf = () =>
    contracts
      .flatMap((contract) => grantCallsOf({ contract, address: signer }))
      .filter(({ role }) => role === 'MINTER_ROLE');
  const sendAll = async (selector: string | null) => {
    const [administrator] = (await call({ method: 'eth_accounts', params: [] })) as string[];
    const hashes: unknown[] = [];
    for (const { to, data } of callsOf()) {
      const transaction = { from: administrator, to, data: selector === null ? data : withSelector(data, selector) };
      hashes.push(await call({ method: 'eth_sendTransaction', params: [transaction] }));
    }
    for (const hash of hashes) await awaitReceipt(call, hash);
  };
  return {
    /** @returns the contracts on which the signer does not have MINTER_ROLE */
    missing: async (): Promise<readonly string[]> => {
      const missing: string[] = [];
      for (const { to, data } of callsOf()) {
        const query = { to, data: withSelector(data, HAS_ROLE) };
        const result = await call({ method: 'eth_call', params: [query, 'latest'] });
        if (BigInt(String(result)) === 0n) missing.push(to);
      }
      return missing;
    },
    /** Grants the role and waits until the transactions are mined. @throws Error if a transaction fails */
    grant: () => sendAll(null),
    revoke: () => sendAll(REVOKE_ROLE),
  };
}

const withSelector = (data: string, selector: string) => `${selector}${data.slice(SELECTOR_DIGITS)}`;

async function awaitReceipt(call: CallNode, hash: unknown): Promise<void> {
  const endMs = performance.now() + BLOCK_MAX_MS;
  for (;;) {
    const receipt = (await call({ method: 'eth_getTransactionReceipt', params: [hash] })) as { status?: string } | null;
    if (receipt?.status === '0x1') return;
    if (receipt !== null) throw new Error('the transaction to grant or revoke MINTER_ROLE failed');
    if (performance.now() > endMs) throw new Error('the administrator’s transaction was not mined');
    await delay(POLL_MS);
  }
}

/** Fractions of assets that are requested while the role is revoked, and after the first assets have a result. */
const FRACTIONS = { withoutRole: 0.1, afterwards: 0.15 };
const ROUND_ASSETS = 20;
const REQUEST_ASSETS_MAX = 12;
const RIVALS_FRACTION = 0.3;
const PROBES_PER_ROUND = 3;
const WAIT_POLL_MS = 500;

async function playMints(stage: MintStage) {
  const { options, ledger } = stage;
  const { assetsMax, log } = options;
  const game = await startGame(stage);
  const { from, refreshes } = game;
  const withoutRole = Math.max(1, Math.round(assetsMax * FRACTIONS.withoutRole));
  const first = assetsMax - withoutRole - Math.round(assetsMax * FRACTIONS.afterwards);
  await playRounds(game, Math.ceil(first / 2));
  if (!isOver(stage)) await playWithoutRole(game, withoutRole);
  await playRounds(game, first + withoutRole);
  if (!isOver(stage)) await playForeignCursors(stage);
  log(`${ledger.accepted} assets accepted; waiting for results`);
  const shown = await awaitEnd(stage, from, new Set());
  if (isOver(stage)) return { shown, from, refreshes };
  const again = await playAfterwards(game, shown);
  log('waiting for the results of the repeated requests');
  return { shown: await awaitEnd(stage, from, again), from, refreshes };
}

/** Requests one asset per collection. The run's lists start from these assets. */
async function startGame(stage: MintStage) {
  const from: { -readonly [K in keyof FirstCursors]: FirstCursors[K] } = { erc721: null, erc1155: null };
  for (const collection of COLLECTIONS) {
    await requestAssets(stage, [stage.assets.mintable(collection)]);
    from[collection] = await findFirstCursor(stage, collection);
  }
  const pace = createPace(stage.options.rate);
  return { stage, pace, probe: createProbe(stage), refreshes: createRefreshes(stage), from };
}
type MintGame = Awaited<ReturnType<typeof startGame>>;

async function playRounds(game: MintGame, acceptedMax: number): Promise<void> {
  const { stage, pace } = game;
  for (let remaining = acceptedMax - stage.ledger.accepted; remaining > 0 && !isOver(stage); ) {
    const count = Math.min(remaining, ROUND_ASSETS);
    await pace.due(count);
    await playRound(game, count);
    remaining -= count;
    stage.options.onProgress(`${stage.ledger.accepted} assets accepted, ${stage.counts.probes} invalid calls sent`);
  }
}

async function playRound({ stage, probe, refreshes, from }: MintGame, count: number): Promise<void> {
  const { random, assets } = stage;
  const requested = await requestAll(stage, drawAssets(stage, count));
  const expectedTokens = requested.filter(({ expected }) => expected.kind === 'token');
  const known = expectedTokens.filter(({ referenceId }) => (stage.ledger.find(referenceId)?.attemptsMin ?? 0) > 0);
  if (known.length > 0) await playConflicts(stage, random.pick(known));
  for (let probes = 0; probes < PROBES_PER_ROUND; probes++) await probe();
  await refreshes.play();
  const collection = random.pick(COLLECTIONS);
  await playLists(stage, collection, from[collection]);
  const twice = assets.mintable();
  const { referenceId } = twice;
  const conflict = { assets: [twice, { ...assets.mintable(twice.collection), referenceId }], taken: [referenceId] };
  await sendConflict(stage, { ...conflict, name: 'a request with the same reference id twice', fresh: [referenceId] });
}

/** Reuses an asset's reference id: for the same asset, for another asset, and together with a new asset. */
async function playConflicts(stage: MintStage, asset: RequestedAsset): Promise<void> {
  const { referenceId, collection } = asset;
  const taken = [referenceId];
  const other = { ...stage.assets.mintable(collection), referenceId };
  await sendConflict(stage, { name: 'a repeated asset', assets: [asset], taken, fresh: [] });
  await sendConflict(stage, { name: 'a new asset with a taken reference id', assets: [other], taken, fresh: [] });
  const fresh = stage.assets.mintable(collection);
  await sendConflict(stage, {
    name: 'a taken and a new reference id',
    assets: [fresh, asset],
    taken,
    fresh: [fresh.referenceId],
  });
}

function drawAssets({ assets, random, options }: MintStage, count: number): readonly RequestedAsset[] {
  const drawn: RequestedAsset[] = count > 2 && random.chance(RIVALS_FRACTION) ? [...assets.rivals()] : [];
  while (drawn.length < count) drawn.push(random.chance(options.brokenFraction) ? assets.failing() : assets.mintable());
  return random.shuffle(drawn);
}

async function requestAll(stage: MintStage, assets: readonly RequestedAsset[]): Promise<readonly RequestedAsset[]> {
  const requests: RequestedAsset[][] = [];
  for (const collection of COLLECTIONS) {
    const own = assets.filter((asset) => asset.collection === collection);
    while (own.length > 0) requests.push(own.splice(0, stage.random.integer(1, REQUEST_ASSETS_MAX)));
  }
  await Promise.all(requests.map((request) => requestAssets(stage, request)));
  return assets;
}

/** While MINTER_ROLE is revoked, requests must wait and not fail. After the role is granted, they must continue. */
async function playWithoutRole(game: MintGame, count: number): Promise<void> {
  const { stage } = game;
  const { options, counts, differences } = stage;
  options.log('revoking MINTER_ROLE from the signer; new requests must wait');
  try {
    await options.role.revoke();
    const requested = await requestAll(stage, drawAssets(stage, count));
    counts.withoutRole += requested.length;
    counts.waitedForRole = await awaitWaitingForRole(stage);
    if (counts.waitedForRole === 0) differences.add('role', 'the minter reported no assets that wait for MINTER_ROLE');
    for (const { referenceId, collection } of requested) {
      if (stage.ledger.find(referenceId)?.attemptsMin !== 1) continue;
      const status = (await readMint(stage, collection, referenceId))?.result[0]?.status;
      if (status !== undefined && status !== 'pending')
        differences.add('role', `${referenceId} is ${status} while the signer has no MINTER_ROLE`);
    }
  } finally {
    await options.role.grant();
    options.log(`granted MINTER_ROLE again; ${counts.waitedForRole} assets were waiting`);
  }
}

async function awaitWaitingForRole({ rows, options }: MintStage): Promise<number> {
  const endAt = performance.now() + options.settleIdleMaxMs;
  for (;;) {
    const waiting = await rows.waitingForRole();
    if (waiting > 0 || performance.now() > endAt || options.stop.aborted) return waiting;
    await delay(WAIT_POLL_MS);
  }
}

/**
 * Repeats requests for minted assets, requests the minted token ids for new assets, and retries failed assets.
 * @returns the reference ids of the retried assets
 */
async function playAfterwards({ stage, probe }: MintGame, shown: ShownMints): Promise<ReadonlySet<string>> {
  const { assets, ledger, random, options, counts } = stage;
  const withStatus = (status: string) =>
    random.shuffle(ledger.entries().filter(({ asset }) => shown.get(asset.referenceId)?.status === status));
  const [minted, failed] = [withStatus('succeeded'), withStatus('failed')];
  const count = Math.max(2, options.assetsMax - ledger.accepted);
  options.log(`repeating requests: ${minted.length} minted, ${failed.length} failed`);
  for (const { asset } of minted.slice(0, 3)) await playConflicts(stage, asset);
  const ids = minted.flatMap(({ asset: { referenceId, collection } }) => {
    const { token_id: tokenId } = shown.get(referenceId)!;
    const isChosen = tokenId !== null && BigInt(tokenId) < THRESHOLD;
    return collection === 'erc721' && isChosen ? [{ ...ledger.find(referenceId)!.asset, tokenId }] : [];
  });
  const corrected = failed.slice(0, Math.ceil(count / 2)).map(({ asset }) => assets.corrected(asset));
  const taken = ids.slice(0, count - corrected.length).map((asset) => assets.withTakenTokenId(asset));
  const again = new Set(corrected.map(({ referenceId }) => referenceId));
  counts.again += again.size;
  await requestAll(stage, [...corrected, ...taken]);
  await probe();
  return again;
}

type MintSimulationResult = Awaited<ReturnType<typeof simulateMints>>;

export async function simulateMints(options: MintSimulationOptions) {
  const stage = createStage(options);
  const { run, api, ledger, counts, differences } = stage;
  try {
    const missing = await options.role.missing();
    if (missing.length > 0) {
      options.log('granting MINTER_ROLE to the signer, which an interrupted run may have revoked');
      await options.role.grant();
    }
    const from = await readHead(stage);
    options.log(`run ${run.tag}, seed ${run.seed}: ${options.assetsMax} assets on ${options.chain.name}`);
    const startedAt = performance.now();
    const played = await playMints(stage);
    const playedAt = performance.now();
    options.log('comparing requests, rows, chain, history and metadata');
    const checked = await check(stage, played, from);
    return {
      run,
      chain: options.chain.name,
      counts,
      calls: api.tally,
      ...checked,
      accepted: ledger.accepted,
      unacknowledged: ledger.unacknowledged,
      minted: latencyOf(played.shown),
      playedMs: playedAt - startedAt,
      checkedMs: performance.now() - playedAt,
      differences: differences.byKind(),
    };
  } finally {
    api.close();
  }
}

function createStage(options: MintSimulationOptions): MintStage {
  const run = createRun(options.seed, Date.now());
  const random = createRandom(options.seed);
  const headers = { [options.keyHeader]: options.secretKey };
  return {
    options,
    run,
    random,
    ledger: createMintLedger(),
    counts: createCounts(),
    assets: createAssetFactory(run, random, options.contracts),
    api: openMintApi(options.url, headers, options.onProgress),
    rows: createMintRows(options.clickhouse, referencePrefix(run)),
    differences: createDifferences<MintDifferenceKind>(),
    endAt: performance.now() + options.durationMaxMs,
  };
}

async function check(
  stage: MintStage,
  { shown, from: cursors, refreshes }: Awaited<ReturnType<typeof playMints>>,
  from: Awaited<ReturnType<typeof readHead>>,
) {
  checkOutcomes(stage, shown);
  await checkReads(stage, shown, cursors);
  const attempts = await checkRows(stage, shown);
  const tokens = await readChainTokens(stage, from);
  await checkChain(stage, shown, tokens);
  const activities = await checkHistory(stage, from, tokens);
  const failed = [...shown.values()].filter(({ status }) => status === 'failed').length;
  return {
    attempts,
    activities,
    failed,
    tokens: tokens.length,
    succeeded: succeededOf(shown).length,
    metadata: await checkMetadata(stage, refreshes),
  };
}

function latencyOf(shown: ShownMints): Latency {
  const latency = createLatency();
  for (const { created_at, updated_at } of succeededOf(shown))
    latency.add(Date.parse(updated_at) - Date.parse(created_at));
  return latency;
}

const PASSED = 'Each reference id has one token or one clear failure. Chain, rows, API and history agree.';

export function toReport(result: MintSimulationResult): RunReport {
  const { run, chain, calls, differences, succeeded, failed } = result;
  const { tokens, attempts, activities, metadata } = result;
  const facts = {
    assets: { accepted: result.accepted, unanswered: result.unacknowledged, ...result.counts },
    ended: { succeeded, failed },
    found: { tokens, attempts, activities, metadata },
    calls: {
      made: calls.calls,
      refused429: calls.refused,
      waited429Seconds: round(calls.waitedMs / 1000),
      again: Object.fromEntries(calls.again),
    },
    answeredMs: quantilesOf(calls.latency),
    mintedSeconds: quantilesOf(result.minted, 1000),
    playSeconds: round(result.playedMs / 1000),
    checkSeconds: round(result.checkedMs / 1000),
  };
  return { run, chain, facts, success: PASSED, differences };
}
