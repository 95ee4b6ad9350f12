import { createRandom } from '@playline/testkit/random';
import { createDifferences, createLatency, type Latency, quantilesOf, type RunReport, round } from '../report.ts';
import { createRun } from '../run.ts';
import { openMintApi } from './api.ts';
import { createAssetMaker, createMintBook, referencePrefix } from './assets.ts';
import { checkChain, checkHistory, readChainTokens, readHead, succeededOf } from './check-chain.ts';
import { checkOutcomes, checkReadings, checkRows, createMintRows } from './check-requests.ts';
import type { ShownMints } from './lists.ts';
import { checkMetadata } from './metadata.ts';
import { playMints } from './play.ts';
import { createCounts, type MintDifferenceKind, type MintSimulationOptions, type MintStage } from './stage.ts';

export type MintSimulationResult = Awaited<ReturnType<typeof simulateMints>>;

export async function simulateMints(options: MintSimulationOptions) {
  const stage = createStage(options);
  const { run, api, book, counts, differences } = stage;
  try {
    const missing = await options.role.missing();
    if (missing.length > 0) {
      options.log('the signer has no MINTER_ROLE, as after a killed run: granting it');
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
      accepted: book.accepted,
      doubted: book.doubted,
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
    book: createMintBook(),
    counts: createCounts(),
    assets: createAssetMaker(run, random, options.contracts),
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
  await checkReadings(stage, shown, cursors);
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

const CLEAN = 'Each reference id has one token or one clear failure; chain, rows, interface and history agree.';

export function toReport(result: MintSimulationResult): RunReport {
  const { run, chain, calls, differences, succeeded, failed } = result;
  const { tokens, attempts, activities, metadata } = result;
  const facts = {
    assets: { accepted: result.accepted, unanswered: result.doubted, ...result.counts },
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
  return { run, chain, facts, clean: CLEAN, differences };
}
