import type { ActivityRow, TokenRow } from '@playline/chain';
import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import type { Importer } from '../../../services/operator/src/import/importer.ts';
import { createReadHistory, type ReadHistory } from '../../../services/operator/src/replicate/history.ts';
import { createPace } from '../delivery.ts';
import { createDifferences, createLatency, quantilesOf, type RunReport, round } from '../report.ts';
import { createRun, type RunOptions } from '../run.ts';
import { checkTokens, correctTokens, createPublish, createSent, generateTokens, publishTokens } from './import.ts';
import {
  type ChainDifferenceKind,
  checkServed,
  createLedger,
  createReplica,
  findHistoryStart,
  follow,
  type HistoryStart,
  planWalks,
  walkBackwards,
  walkFiltered,
} from './replica.ts';
import { createTraffic, type Traffic, type TrafficLine } from './traffic.ts';

export interface ChainSimulationOptions extends RunOptions {
  readonly url: string;
  readonly chain: { readonly name: string /** Null accepts any id. */; readonly id: string | null };
  readonly activities: Pick<Importer<ActivityRecord, ActivityRow>, 'import'>;
  readonly tokens: Pick<Importer<TokenRecord, TokenRow>, 'import'>;
  readonly activitiesMax: number;
}

export type ChainSimulationResult = Awaited<ReturnType<typeof simulateChain>>;

const IMPORT_LINES_MAX = 500;
const IMPORT_LINES_MIN = 20;
const PAGE_SIZE = 200;
const NEVER = new AbortController().signal;

function createState(options: ChainSimulationOptions) {
  const { seed, chain, activitiesMax, brokenFraction } = options;
  const run = createRun(seed, Date.now());
  return {
    options,
    run,
    sent: createSent(),
    ledger: createLedger(),
    differences: createDifferences<ChainDifferenceKind>(),
    latency: createLatency(),
    calls: { made: 0, waited: 0 },
    traffic: createTraffic({ run, chain: chain.name, activitiesMax, brokenFraction }),
  };
}
type State = ReturnType<typeof createState>;

/** Publishes a history, follows it like a replica until all activities are served, and compares it with the model. */
export async function simulateChain(options: ChainSimulationOptions) {
  const state = createState(options);
  const { run, ledger, differences, latency, calls, sent, traffic } = state;
  const before = await findHistoryStart(createReader(state), options.stop, options.onProgress);
  options.onProgress(`run ${run.tag}, seed ${run.seed}: ${options.activitiesMax} activities on ${options.chain.name}`);
  const tokens = generateTokens(createRandom(run.seed), options.chain.name, traffic.contracts);
  await publishTokens(options.tokens, tokens, differences);
  const published = await publishAndFollow(state, before);
  const corrected = correctTokens(tokens);
  await publishTokens(options.tokens, corrected, differences);
  const startedAt = performance.now();
  const readings = await checkReads(state, before, published.end);
  const changed = new Map(corrected.map((token) => [token.contract_address, token]));
  await checkTokens(
    tokens.map((token) => changed.get(token.contract_address) ?? token),
    { ...options, differences, retryMaxMs: options.settleIdleMaxMs, onCall: () => void calls.made++ },
  );
  return {
    run,
    chain: options.chain.name,
    sent,
    latency,
    calls,
    readings,
    tokens: tokens.length,
    sentMs: published.sentMs,
    settledMs: published.settledMs,
    checkedMs: performance.now() - startedAt,
    unknown: ledger.unknown,
    served: [...ledger.entries()].filter(([, { position }]) => position !== null).length,
    /** Versions before the run, and activities from other sources during the run. */
    before: before.versions,
    strangers: published.strangers,
    differences: differences.byKind(),
  };
}

function createReader({ options, calls }: State, filters: Readonly<Record<string, string>> = {}): ReadHistory {
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
      onProgress(`${why}; retrying in ${(ms / 1_000).toFixed(1)} seconds`);
    },
  });
  return (cursor, stop) => {
    calls.made++;
    return read(cursor, stop);
  };
}

/** Publishes all lines and follows the history until it is complete. */
async function publishAndFollow(state: State, before: HistoryStart) {
  const { options, run, ledger, differences, latency, sent, traffic } = state;
  const { chain, settleIdleMaxMs, onProgress } = options;
  const replica = createReplica({ run, chain, ledger, differences, onServed: latency.add });
  const failed = new AbortController();
  const publish = createPublish({
    importer: options.activities,
    ledger,
    differences,
    sent,
    retryMaxMs: settleIdleMaxMs,
    onProgress,
  });
  const startedAt = performance.now();
  let sentMs: number | null = null;
  const send = async () => {
    const stop = AbortSignal.any([options.stop, failed.signal]);
    for await (const lines of paceLines(traffic, options.rate, stop)) {
      if (!(await publish(lines))) break;
      onProgress(toProgressLine(state, startedAt));
    }
    sentMs = performance.now() - startedAt;
  };
  const followed = follow(before.cursor, {
    readHistory: createReader(state),
    replica,
    ledger,
    onProgress,
    stop: failed.signal,
    isSending: () => sentMs === null,
    idleMaxMs: settleIdleMaxMs,
  });
  const giveUp = (error: unknown) => {
    failed.abort();
    throw error;
  };
  const [end] = await Promise.all([followed.catch(giveUp), send().catch(giveUp)]);
  checkServed(ledger, differences);
  const sendingMs = sentMs ?? 0;
  return { end, strangers: replica.strangers, sentMs: sendingMs, settledMs: performance.now() - startedAt - sendingMs };
}

async function* paceLines(traffic: Traffic, rate: number, stop: AbortSignal): AsyncGenerator<TrafficLine[]> {
  const pace = createPace(rate);
  const size = rate === 0 ? IMPORT_LINES_MAX : Math.min(IMPORT_LINES_MAX, Math.max(IMPORT_LINES_MIN, rate / 2));
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

function toProgressLine({ sent, ledger }: State, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1_000;
  const rate = (ledger.acknowledged / seconds).toFixed(0);
  return (
    `${seconds.toFixed(0)} s: ${sent.activities} activities, ${sent.laterVersions} later versions, ` +
    `${sent.refused} refused, ${rate} versions/s, ${ledger.pending} not served yet`
  );
}

async function checkReads(state: State, before: HistoryStart, end: string) {
  const { options, ledger, traffic } = state;
  options.onProgress('reading backwards');
  const walk = { readHistory: createReader(state), from: end, until: before.last, stop: NEVER };
  const readings = [{ name: 'backwards', activities: await walkBackwards(walk, state) }];
  for (const filtered of planWalks(ledger, traffic.contracts)) {
    options.onProgress(`reading ${filtered.name}`);
    const readHistory = createReader(state, filtered.filters);
    readings.push({
      name: filtered.name,
      activities: await walkFiltered(filtered, { readHistory, stop: NEVER }, state),
    });
  }
  return readings;
}

const PASSED = 'Each acknowledged activity is served once, in order and in its last version, with and without filters.';

export function toReport(result: ChainSimulationResult): RunReport {
  const { run, chain, sent, latency, differences } = result;
  const facts = {
    sent: { ...sent, seconds: round(result.sentMs / 1000) },
    unknownVersions: result.unknown,
    served: { activities: result.served, versionsBefore: result.before, strangers: result.strangers },
    acknowledgedToServedMs: quantilesOf(latency),
    readings: result.readings,
    tokens: result.tokens,
    calls: { ...result.calls },
    settleSeconds: round(result.settledMs / 1000),
    checkSeconds: round(result.checkedMs / 1000),
  };
  return { run, chain, facts, success: PASSED, differences };
}
