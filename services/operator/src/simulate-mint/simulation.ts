import { createDifferences, type KindOfDifference } from '../simulate/differences.ts';
import { createRandom } from '../simulate/random.ts';
import { createRun, type Run } from '../simulate/run.ts';
import { createLatency, type Latency } from '../simulate/tally.ts';
import { type ApiTally, openMintApi } from './api.ts';
import { createAssetMaker, referencePrefix } from './assets.ts';
import { createMintBook } from './book.ts';
import { judgeChain, readChainTokens, readHead, succeededOf } from './judge-chain.ts';
import { judgeHistory } from './judge-history.ts';
import { judgeMetadata } from './judge-metadata.ts';
import { judgeOutcomes, judgeReadings } from './judge-requests.ts';
import { judgeRows } from './judge-rows.ts';
import type { MintDifferenceKind } from './kinds.ts';
import { createMintRows } from './mint-rows.ts';
import { playMints } from './play.ts';
import type { ShownMints } from './settle.ts';
import type { MintDeeds, MintSimulationOptions, MintStage } from './stage.ts';

export interface MintSimulationResult {
  readonly run: Run;
  readonly chain: string;
  readonly deeds: MintDeeds;
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

const DEEDS: MintDeeds = {
  orders: 0,
  conflicts: 0,
  probes: 0,
  lists: 0,
  listed: 0,
  refreshes: 0,
  refreshed: 0,
  withoutRole: 0,
  waitedForRole: 0,
  again: 0,
};

/** Plays a game that mints, waits for all results, and reconciles every place that shows them. */
export async function simulateMints(options: MintSimulationOptions): Promise<MintSimulationResult> {
  const stage = createStage(options);
  const { run, api, book, deeds, differences } = stage;
  try {
    const missing = await options.role.missing();
    if (missing.length > 0) {
      options.say('the signer has no MINTER_ROLE, as after a run that was killed: it is given to it');
      await options.role.give();
    }
    const from = await readHead(stage);
    options.say(`run ${run.tag}, seed ${run.seed}: ${options.assetsMax} assets on ${options.chain.name}`);
    const startedAt = performance.now();
    const played = await playMints(stage);
    const playedAt = performance.now();
    options.say('reconciling requests, rows, chain, history and metadata');
    const judged = await judge(stage, played, from);
    return {
      run,
      chain: options.chain.name,
      deeds,
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
    deeds: { ...DEEDS },
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
