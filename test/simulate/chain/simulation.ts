import type { ActivityRow, TokenRow } from '@playline/chain';
import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import type { Importer } from '../../../services/operator/src/import/importer.ts';
import { createReadHistory, type ReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { createPace } from '../delivery.ts';
import {
  createDifferences,
  createLatency,
  type KindOfDifference,
  type Latency,
  type RunReport,
  round,
} from '../report.ts';
import { createRun, type Run } from '../run.ts';
import { correctTokens, createPublish, judgeTokens, makeTokens, publishTokens, type Sent } from './publish.ts';
import { type Beginning, findBeginning, follow, planWalks, walkBackwards, walkFiltered } from './readings.ts';
import {
  type ChainDifferenceKind,
  type ChainDifferences,
  createLedger,
  createReplica,
  type Ledger,
  lastAcknowledged,
} from './replica.ts';
import { createTraffic, type Traffic, type TrafficLine } from './traffic.ts';

export interface ChainSimulationOptions {
  /** Address of the chain interface, without `/v1`. */
  readonly url: string;
  readonly chain: { readonly name: string /** Null: whatever is shown. */; readonly id: string | null };
  readonly activities: Pick<Importer<ActivityRecord, ActivityRow>, 'import'>;
  readonly tokens: Pick<Importer<TokenRecord, TokenRow>, 'import'>;
  readonly seed: number;
  readonly activitiesMax: number;
  /** Lines per second; 0: as fast as the log accepts them. */
  readonly rate: number;
  readonly brokenShare: number;
  /** Maximum time without anything new in the history, or without an answer of the stores. */
  readonly settleIdleMaxMs: number;
  /** Ends the sending early; what was sent is still reconciled. */
  readonly stop: AbortSignal;
  onProgress(line: string): void;
}

export interface ChainSimulationResult {
  readonly run: Run;
  /** Name of the chain. */
  readonly chain: string;
  readonly sent: Sent;
  readonly sentMs: number;
  readonly settledMs: number;
  readonly judgedMs: number;
  /** Number of versions that were never acknowledged. */
  readonly unknown: number;
  /** Number of activities of the run that were served. */
  readonly served: number;
  /** Number of places in the history before the run, and of activities of others since. */
  readonly before: number;
  readonly strangers: number;
  readonly latency: Latency;
  /** Every reading except the one that follows, with the number of activities in the model. */
  readonly readings: readonly { readonly name: string; readonly activities: number }[];
  readonly tokens: number;
  readonly calls: { readonly made: number; readonly waited: number };
  readonly differences: readonly KindOfDifference<ChainDifferenceKind>[];
}

/** Lines of one import: as many as it compares in one query, fewer at a low rate. */
const PORTION_LINES_MAX = 500;
const PORTION_LINES_MIN = 20;
const PAGE_SIZE = 200;
const NEVER = new AbortController().signal;

/** The parts of a run. */
interface Stage {
  readonly options: ChainSimulationOptions;
  readonly run: Run;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  readonly sent: Sent;
  readonly latency: Latency;
  readonly calls: { made: number; waited: number };
  readonly traffic: Traffic;
}

/** Publishes a history, follows it as a replica until all of it is served, and compares it with the model. */
export async function simulateChain(options: ChainSimulationOptions): Promise<ChainSimulationResult> {
  const stage = createStage(options);
  const { run, ledger, differences, latency, calls, sent, traffic } = stage;
  const before = await findBeginning(createReader(stage), options.stop, options.onProgress);
  options.onProgress(`run ${run.tag}, seed ${run.seed}: ${options.activitiesMax} activities of ${options.chain.name}`);
  const tokens = makeTokens(createRandom(run.seed), options.chain.name, traffic.contracts);
  await publishTokens(options.tokens, tokens, differences);

  const played = await play(stage, before);
  const corrected = correctTokens(tokens);
  await publishTokens(options.tokens, corrected, differences);
  const startedAt = performance.now();
  const readings = await judgeReadings(stage, before, played.end);
  const changed = new Map(corrected.map((token) => [token.contract_address, token]));
  await judgeTokens(
    tokens.map((token) => changed.get(token.contract_address) ?? token),
    { ...options, differences, patienceMs: options.settleIdleMaxMs, onCall: () => void calls.made++ },
  );
  return {
    run,
    chain: options.chain.name,
    sent,
    latency,
    calls,
    readings,
    tokens: tokens.length,
    sentMs: played.sentMs,
    settledMs: played.settledMs,
    judgedMs: performance.now() - startedAt,
    unknown: ledger.unknown,
    served: [...ledger.entries()].filter(([, { position }]) => position !== null).length,
    before: before.places,
    strangers: played.strangers,
    differences: differences.byKind(),
  };
}

function createStage(options: ChainSimulationOptions): Stage {
  const { seed, chain, activitiesMax, brokenShare } = options;
  const run = createRun(seed, Date.now());
  return {
    options,
    run,
    ledger: createLedger(),
    differences: createDifferences<ChainDifferenceKind>(),
    sent: { portions: 0, activities: 0, laterVersions: 0, replaced: 0, refused: 0, bytes: 0, retries: 0 },
    latency: createLatency(),
    calls: { made: 0, waited: 0 },
    traffic: createTraffic({ run, chain: chain.name, activitiesMax, brokenShare }),
  };
}

/** A reader of the history that counts its calls. */
function createReader({ options, calls }: Stage, filters: Readonly<Record<string, string>> = {}): ReadHistory {
  const { url, chain, settleIdleMaxMs, onProgress } = options;
  const read = createReadHistory({
    url,
    chain: chain.name,
    pageSize: PAGE_SIZE,
    filters,
    patienceMs: settleIdleMaxMs,
    onWait: (why, ms) => {
      calls.made++;
      calls.waited++;
      onProgress(`${why}; asking again in ${(ms / 1_000).toFixed(1)} seconds`);
    },
  });
  return (cursor, stop) => {
    calls.made++;
    return read(cursor, stop);
  };
}

/** Publishes everything and follows the history until all of it is served. */
async function play(stage: Stage, before: Beginning) {
  const { options, run, ledger, differences, latency, sent, traffic } = stage;
  const { chain, settleIdleMaxMs, onProgress } = options;
  const replica = createReplica({ run, chain, ledger, differences, onServed: latency.add });
  const faulty = new AbortController();
  const publish = createPublish({
    way: options.activities,
    ledger,
    differences,
    sent,
    patienceMs: settleIdleMaxMs,
    onProgress,
  });
  const startedAt = performance.now();
  let sentMs: number | null = null;
  const send = async () => {
    const stop = AbortSignal.any([options.stop, faulty.signal]);
    for await (const lines of paced(traffic, options.rate, stop)) {
      if (!(await publish(lines))) break;
      onProgress(sendingLine(stage, startedAt));
    }
    sentMs = performance.now() - startedAt;
  };
  const followed = follow(before.cursor, {
    readHistory: createReader(stage),
    replica,
    ledger,
    onProgress,
    stop: faulty.signal,
    isSending: () => sentMs === null,
    idleMaxMs: settleIdleMaxMs,
  });
  const giveUp = (fault: unknown) => {
    faulty.abort();
    throw fault;
  };
  const [end] = await Promise.all([followed.catch(giveUp), send().catch(giveUp)]);
  for (const [, entry] of ledger.entries())
    if (entry.served < lastAcknowledged(entry)) differences.add('missing', toMissing(entry));
  const sendingMs = sentMs ?? 0;
  return { end, strangers: replica.strangers, sentMs: sendingMs, settledMs: performance.now() - startedAt - sendingMs };
}

function toMissing(entry: Parameters<typeof lastAcknowledged>[0]): string {
  const { activity, served } = entry;
  const what = served === -1 ? 'is not served' : `is served in version ${served + 1} of ${lastAcknowledged(entry) + 1}`;
  return `${activity.id} ${what}`;
}

/** Lines of the traffic, as many as are due. */
async function* paced(traffic: Traffic, rate: number, stop: AbortSignal): AsyncGenerator<TrafficLine[]> {
  const pace = createPace(rate);
  const size = rate === 0 ? PORTION_LINES_MAX : Math.min(PORTION_LINES_MAX, Math.max(PORTION_LINES_MIN, rate / 2));
  for (let isOver = false; !isOver && !stop.aborted; ) {
    const lines: TrafficLine[] = [];
    while (lines.length < size && !isOver) {
      const group = traffic.next(Date.now());
      isOver = group === null;
      for (const each of group ?? []) lines.push(each);
    }
    await pace.due(lines.length);
    if (lines.length > 0) yield lines;
  }
}

function sendingLine({ sent, ledger }: Stage, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1_000;
  const rate = (ledger.acknowledged / seconds).toFixed(0);
  return (
    `${seconds.toFixed(0)} s: ${sent.activities} activities, ${sent.laterVersions} later versions, ` +
    `${sent.refused} refused, ${rate} versions/s, ${ledger.pending} not served yet`
  );
}

/** Reads backwards once, and reads with every filter. */
async function judgeReadings(stage: Stage, before: Beginning, end: string) {
  const { options, ledger, traffic } = stage;
  options.onProgress('reading backwards');
  const way = { readHistory: createReader(stage), from: end, until: before.last, stop: NEVER };
  const readings = [{ name: 'backwards', activities: await walkBackwards(way, stage) }];
  for (const walk of planWalks(ledger, traffic.contracts)) {
    options.onProgress(`reading ${walk.name}`);
    const readHistory = createReader(stage, walk.filters);
    readings.push({ name: walk.name, activities: await walkFiltered(walk, { readHistory, stop: NEVER }, stage) });
  }
  return readings;
}

const CLEAN = 'All acknowledged activities are served once, in their last version, in order, and under every filter.';

export function toReport(result: ChainSimulationResult): RunReport {
  const { run, chain, sent, calls, latency, differences } = result;
  const [sentS, settledS, judgedS] = [result.sentMs / 1000, result.settledMs / 1000, result.judgedMs / 1000];
  const rate = ((sent.activities + sent.laterVersions) / Math.max(sentS, 0.001)).toFixed(0);
  const lines: [string, string][] = [
    [
      'sent',
      `${sent.activities} activities and ${sent.laterVersions} later versions in ${sent.portions} imports, ${(sent.bytes / 2 ** 20).toFixed(1)} MiB in ${sentS.toFixed(1)} s (${rate}/s)`,
    ],
    ['again', `${sent.retries} imports tried again`],
    ['refused', `${sent.refused} broken lines, ${sent.replaced} more were replaced by a later line`],
    ['unknown', `${result.unknown} versions never acknowledged`],
    ['served', `${result.served} activities, the last ${settledS.toFixed(1)} s after the last import`],
    ['others', `${result.before} places before the run, ${result.strangers} activities of others since`],
    [
      'latency',
      `from acknowledged to served: p50 ${latency.quantileMs(0.5).toFixed(0)} ms, p99 ${latency.quantileMs(0.99).toFixed(0)} ms`,
    ],
    ['readings', result.readings.map(({ name, activities }) => `${name} ${activities}`).join(', ')],
    ['tokens', String(result.tokens)],
    ['calls', `${calls.made}, ${calls.waited} of them waited for, in ${(sentS + settledS + judgedS).toFixed(0)} s`],
  ];
  const facts = {
    sent: { ...sent, seconds: round(sentS) },
    unknownVersions: result.unknown,
    served: { activities: result.served, placesBefore: result.before, strangers: result.strangers },
    acknowledgedToServedMs: { p50: round(latency.quantileMs(0.5)), p99: round(latency.quantileMs(0.99)) },
    readings: result.readings,
    tokens: result.tokens,
    calls: { ...calls },
    settleSeconds: round(settledS),
    judgeSeconds: round(judgedS),
  };
  return { run, chain, facts, lines, clean: CLEAN, differences };
}
