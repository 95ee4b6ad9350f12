import { createRandom } from '@playline/testkit/random';
import {
  createDifferences,
  createLatency,
  describeCounts,
  type KindOfDifference,
  type Latency,
  type RunReport,
  round,
} from '../report.ts';
import { createRun, type Run } from '../run.ts';
import { type ApiTally, openMintApi } from './api.ts';
import { createAssetMaker, createMintBook, referencePrefix } from './assets.ts';
import { judgeChain, judgeHistory, readChainTokens, readHead, succeededOf } from './judge-chain.ts';
import { createMintRows, judgeOutcomes, judgeReadings, judgeRows } from './judge-requests.ts';
import type { ShownMints } from './lists.ts';
import { judgeMetadata } from './metadata.ts';
import { playMints } from './play.ts';
import {
  type MintCounts,
  type MintDifferenceKind,
  type MintSimulationOptions,
  type MintStage,
  NO_COUNTS,
} from './stage.ts';

export interface MintSimulationResult {
  readonly run: Run;
  readonly chain: string;
  readonly counts: MintCounts;
  readonly calls: ApiTally;
  readonly accepted: number;
  readonly doubted: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Numbers of tokens of the run on the chain, rows of its attempts, mints in the history, subjects of metadata. */
  readonly tokens: number;
  readonly attempts: number;
  readonly activities: number;
  readonly metadata: number;
  /** Time from acceptance to finality, of successful requests. */
  readonly minted: Latency;
  readonly playedMs: number;
  readonly judgedMs: number;
  readonly differences: readonly KindOfDifference<MintDifferenceKind>[];
}

/** Plays a game that mints, waits for all results, and reconciles every place that shows them. */
export async function simulateMints(options: MintSimulationOptions): Promise<MintSimulationResult> {
  const stage = createStage(options);
  const { run, api, book, counts, differences } = stage;
  try {
    const missing = await options.role.missing();
    if (missing.length > 0) {
      options.log('the signer has no MINTER_ROLE, as after a run that was killed: it is given to it');
      await options.role.give();
    }
    const from = await readHead(stage);
    options.log(`run ${run.tag}, seed ${run.seed}: ${options.assetsMax} assets on ${options.chain.name}`);
    const startedAt = performance.now();
    const played = await playMints(stage);
    const playedAt = performance.now();
    options.log('reconciling requests, rows, chain, history and metadata');
    const judged = await judge(stage, played, from);
    return {
      run,
      chain: options.chain.name,
      counts,
      calls: api.tally,
      ...judged,
      accepted: book.accepted,
      doubted: book.doubted,
      minted: latencyOf(played.shown),
      playedMs: playedAt - startedAt,
      judgedMs: performance.now() - playedAt,
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
    counts: { ...NO_COUNTS },
    assets: createAssetMaker(run, random, options.contracts),
    api: openMintApi({ url: options.url, headers, onWait: options.onProgress }),
    rows: createMintRows(options.clickhouse, referencePrefix(run)),
    differences: createDifferences<MintDifferenceKind>(),
    endAt: performance.now() + options.durationMaxMs,
  };
}

async function judge(
  stage: MintStage,
  { shown, from: cursors, refreshes }: Awaited<ReturnType<typeof playMints>>,
  from: Awaited<ReturnType<typeof readHead>>,
) {
  judgeOutcomes(stage, shown);
  await judgeReadings(stage, shown, cursors);
  const attempts = await judgeRows(stage, shown);
  const tokens = await readChainTokens(stage, from);
  await judgeChain(stage, shown, tokens);
  const activities = await judgeHistory(stage, from, tokens);
  const failed = [...shown.values()].filter(({ status }) => status === 'failed').length;
  return {
    attempts,
    activities,
    failed,
    tokens: tokens.length,
    succeeded: succeededOf(shown).length,
    metadata: await judgeMetadata(stage, refreshes),
  };
}

function latencyOf(shown: ShownMints): Latency {
  const latency = createLatency();
  for (const { created_at, updated_at } of succeededOf(shown))
    latency.add(Date.parse(updated_at) - Date.parse(created_at));
  return latency;
}

const CLEAN = 'Each reference id has one token or one clear failure; chain, rows, interface and history agree.';

const secondsOf = (ms: number) => (ms / 1000).toFixed(1);

export function toReport(result: MintSimulationResult): RunReport {
  const { run, chain, counts, calls, minted, differences } = result;
  const lines: [string, string][] = [
    [
      'asked',
      `${result.accepted} assets accepted in ${counts.orders} orders, ${counts.again} of them again after a failure`,
    ],
    ['unknown', `${result.doubted} assets of orders that were never answered`],
    ['refused', `${counts.conflicts} orders of taken reference ids, ${counts.probes} calls that were wrong`],
    [
      'role',
      `${counts.withoutRole} assets asked for without MINTER_ROLE, ${counts.waitedForRole} told that they wait for it`,
    ],
    ['lists', `${counts.lists} read, ${counts.listed} requests in them`],
    ['metadata', `${counts.refreshes} refreshes of ${counts.refreshed} subjects, ${result.metadata} stored`],
    [
      'calls',
      `${calls.calls}; ${calls.refused} answers 429, waited for ${secondsOf(calls.waitedMs)} s; made again: ${describeCounts(calls.again)}`,
    ],
    ['ended', `${result.succeeded} tokens, ${result.failed} failures, in ${secondsOf(result.playedMs)} s`],
    [
      'found',
      `${result.tokens} tokens on the chain, ${result.attempts} attempts in the rows, ${result.activities} mints in the history`,
    ],
    [
      'minted',
      `from accepted to final: p50 ${secondsOf(minted.quantileMs(0.5))} s, p99 ${secondsOf(minted.quantileMs(0.99))} s`,
    ],
    [
      'answered',
      `p50 ${calls.latency.quantileMs(0.5).toFixed(0)} ms, p99 ${calls.latency.quantileMs(0.99).toFixed(0)} ms`,
    ],
  ];
  const { tokens, attempts, activities, metadata, succeeded, failed } = result;
  const facts = {
    assets: { accepted: result.accepted, neverHeardOf: result.doubted, ...counts },
    ended: { succeeded, failed },
    found: { tokens, attempts, activities, metadata },
    calls: {
      made: calls.calls,
      refused429: calls.refused,
      waited429Seconds: round(calls.waitedMs / 1000),
      again: Object.fromEntries(calls.again),
    },
    answeredMs: { p50: round(calls.latency.quantileMs(0.5)), p99: round(calls.latency.quantileMs(0.99)) },
    mintedSeconds: { p50: round(minted.quantileMs(0.5) / 1000), p99: round(minted.quantileMs(0.99) / 1000) },
    playSeconds: round(result.playedMs / 1000),
    judgeSeconds: round(result.judgedMs / 1000),
  };
  return { run, chain, facts, lines, clean: CLEAN, differences };
}
