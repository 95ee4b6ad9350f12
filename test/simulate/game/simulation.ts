import type { ClickHouseAccount } from '@playline/stores';
import { createDeck, createRandom, type Random } from '@playline/testkit/random';
import { createLanes, createPace, openHttpClient } from '../delivery.ts';
import { createDifferences, describeCounts, type KindOfDifference, type RunReport, round } from '../report.ts';
import { createLedger, createRun, type Ledger, type Run } from '../run.ts';
import { type Cast, createCast } from './persons.ts';
import { createEventReader, type Reconciliation, settle } from './reconcile.ts';
import {
  createProbes,
  createSendBatch,
  createSendProbe,
  createTally,
  type GameDifferenceKind,
  type GameDifferences,
  type Tally,
} from './sender.ts';
import { createTraffic } from './traffic.ts';

export interface SimulationOptions {
  readonly gateway: string;
  readonly clickhouse: ClickHouseAccount;
  readonly environmentId: string;
  readonly keyHeader: string;
  readonly publishableKey: string;
  readonly secretKey: string | null;
  readonly players: number;
  readonly seed: number;
  /** Messages per second; 0: as fast as answers come. */
  readonly rate: number;
  readonly durationMaxMs: number;
  readonly messagesMax: number;
  readonly brokenShare: number;
  readonly settleIdleMaxMs: number;
  /** Maximum time for one batch with its repetitions; by default that of the delivery. */
  readonly deliveryMaxMs?: number;
  /** Ends the sending early; what was sent is still reconciled. */
  readonly stop: AbortSignal;
  onProgress(line: string): void;
}

export interface SimulationResult {
  readonly run: Run;
  readonly tally: Tally;
  readonly sentMs: number;
  readonly settledMs: number;
  readonly unknownMessages: number;
  readonly reconciliation: Reconciliation;
  readonly doubtfulHouseholds: number;
  readonly ways: number;
  readonly differences: readonly KindOfDifference<GameDifferenceKind>[];
}

/** Enough open requests to use two cores of a stack, few enough to need only some megabytes for bodies. */
const OPEN_BATCHES_MAX = { asFastAsPossible: 16, openLoop: 128 };
/** One invalid request is sent for this many batches. */
const BATCHES_PER_PROBE = 40;
const POLL_MS = 1000;

/** Results of the sending, for the comparison. */
interface Stage {
  readonly run: Run;
  readonly ledger: Ledger;
  readonly cast: Cast;
  readonly tally: Tally;
  readonly differences: GameDifferences;
}

/** Sends the traffic, waits until the consumers have caught up, and compares. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const run = createRun(options.seed, Date.now());
  const [ledger, cast, tally, differences] = [
    createLedger(),
    createCast(),
    createTally(),
    createDifferences<GameDifferenceKind>(),
  ];
  const stage = { run, ledger, cast, tally, differences };
  const startedAt = performance.now();
  const ways = await sendTraffic(stage, options);
  const sentMs = performance.now() - startedAt;

  const reader = createEventReader(options.clickhouse, options.environmentId, run);
  const accepted = ledger.count('accepted');
  const settled = await settle(
    { reader, run, ledger, cast },
    {
      accepted,
      idleMaxMs: options.settleIdleMaxMs,
      pollMs: POLL_MS,
      onProgress: ({ raw, distinct }) =>
        options.onProgress(`stored ${distinct} of ${accepted} accepted messages in ${raw} rows`),
    },
  );
  return {
    run,
    tally,
    sentMs,
    settledMs: performance.now() - startedAt - sentMs,
    unknownMessages: ledger.count('unknown'),
    reconciliation: settled.result,
    doubtfulHouseholds: cast.doubtfulHouseholds,
    ways: ways.size,
    differences: [...differences.byKind(), ...settled.differences.byKind()],
  };
}

/**
 * Sends until time, messages or an interruption end it, and waits for all answers. @returns names of what was broken
 */
async function sendTraffic(stage: Stage, options: SimulationOptions): Promise<Set<string>> {
  const { run, tally } = stage;
  const { keyHeader, publishableKey, secretKey, deliveryMaxMs, onProgress } = options;
  const client = openHttpClient(options.gateway);
  const delivery = deliveryMaxMs === undefined ? {} : { totalMaxMs: deliveryMaxMs };
  const senderOptions = { ...stage, client, keyHeader, publishableKey, ...delivery };
  const sendBatch = createSendBatch(senderOptions);
  const traffic = createTraffic({ ...stage, players: options.players, brokenShare: options.brokenShare });
  const lanes = createLanes(options.rate === 0 ? OPEN_BATCHES_MAX.asFastAsPossible : OPEN_BATCHES_MAX.openLoop);
  // Probes share one lane, after those of all households.
  const sendProbe = createSendProbe(senderOptions);
  const probes = createRounds(
    createRandom(run.seed),
    createProbes({ ...stage, keyHeader, publishableKey, secretKey }),
    (probe) => lanes.start(traffic.households.length, () => sendProbe(probe)),
  );
  onProgress(`run ${run.tag}, seed ${run.seed}: ${traffic.households.length} households`);

  const ways = new Set<string>();
  const pace = createPace(options.rate);
  const startedAt = performance.now();
  const isOver = () => options.stop.aborted || performance.now() - startedAt >= options.durationMaxMs;
  const progress = setInterval(() => onProgress(sendingLine(tally, lanes.running, startedAt)), POLL_MS);
  try {
    for (let planned = 0, batches = 1; planned < options.messagesMax && !isOver(); batches++) {
      const batch = traffic.next(Date.now());
      planned += batch.messages;
      for (const way of batch.ways) ways.add(way);
      await pace.due(batch.messages);
      await lanes.start(batch.household, () => sendBatch(batch));
      if (batches % BATCHES_PER_PROBE === 0) await probes.next();
    }
    await probes.finish();
    await lanes.drained();
  } finally {
    clearInterval(progress);
    client.close();
  }
  return ways;
}

/** Passes items one by one in random rounds; `finish` passes those that no round has reached yet. */
function createRounds<T>(random: Random, items: readonly T[], give: (item: T) => Promise<void>) {
  const draw = createDeck(random, items);
  const rest = new Set(items);
  const giveOne = (item: T) => {
    rest.delete(item);
    return give(item);
  };
  return {
    next: () => giveOne(draw()),
    finish: async () => {
      for (const item of [...rest]) await giveOne(item);
    },
  };
}

function sendingLine(tally: Tally, open: number, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1000;
  const retries = [...tally.retries.values()].reduce((sum, value) => sum + value, 0);
  return (
    `${seconds.toFixed(0)} s: sent ${tally.messages}, accepted ${tally.accepted}, rejected ${tally.rejected}, ` +
    `${(tally.messages / seconds).toFixed(0)} messages/s, ${open} batches open, ${retries} tries repeated`
  );
}

const CLEAN = 'All accepted messages are stored once, every rejection and every person is as expected.';

export function toReport(result: SimulationResult): RunReport {
  const { run, tally, reconciliation: rows, unknownMessages, differences } = result;
  const { latency, rejectedByCode } = tally;
  const [sent, settled] = [result.sentMs / 1000, result.settledMs / 1000];
  const codes = [...rejectedByCode].map(([code, times]) => `${code} ${times}`).join(', ');
  const lines: [string, string][] = [
    [
      'sent',
      `${tally.messages} messages in ${tally.batches} batches, ${(tally.bytes / 2 ** 20).toFixed(1)} MiB in ${sent.toFixed(1)} s (${(tally.messages / sent).toFixed(0)}/s)`,
    ],
    [
      'again',
      `${tally.resentBatches} batches resent, ${tally.lostAnswers} answers lost, tries repeated: ${describeCounts(tally.retries)}`,
    ],
    ['accepted', String(tally.accepted)],
    ['rejected', `${tally.rejected} (${codes})`],
    ['unknown', `${unknownMessages} messages never acknowledged, ${rows.unknownStored} of them stored`],
    ['probes', `${tally.probes} requests that are wrong as a whole`],
    ['stored', `${rows.exact} rows in the exact view, ${rows.raw} raw, ${settled.toFixed(1)} s after the last answer`],
    ['persons', `${rows.persons.stored} stored, ${rows.persons.model} in the model`],
    ['answered', `p50 ${latency.quantileMs(0.5).toFixed(0)} ms, p99 ${latency.quantileMs(0.99).toFixed(0)} ms`],
  ];
  if (result.doubtfulHouseholds > 0)
    lines.push(['left out', `persons of ${result.doubtfulHouseholds} households with a batch never acknowledged`]);
  const facts = {
    sent: { batches: tally.batches, messages: tally.messages, bytes: tally.bytes, seconds: round(sent) },
    resentBatches: tally.resentBatches,
    lostAnswers: tally.lostAnswers,
    repeatedTries: Object.fromEntries(tally.retries),
    accepted: tally.accepted,
    rejected: tally.rejected,
    rejectedByCode: Object.fromEntries(rejectedByCode),
    unknown: { batches: tally.unknownBatches, messages: unknownMessages, stored: rows.unknownStored },
    probes: tally.probes,
    ways: result.ways,
    rows: { raw: rows.raw, exact: rows.exact },
    persons: { ...rows.persons, householdsLeftOut: result.doubtfulHouseholds },
    acknowledgedMs: { p50: round(latency.quantileMs(0.5)), p99: round(latency.quantileMs(0.99)) },
    settleSeconds: round(settled),
  };
  return { run, facts, lines, clean: CLEAN, differences };
}
