import type { ClickHouseAccount } from '@playline/stores';
import { createDeck, createRandom, type Random } from '@playline/testkit/random';
import { createLanes, createPace, openHttpClient } from '../delivery.ts';
import { createDifferences, quantilesOf, type RunReport, round } from '../report.ts';
import { createLedger, createRun, type Run } from '../run.ts';
import { createCast } from './persons.ts';
import { createEventReader, settle } from './reconcile.ts';
import {
  createProbes,
  createSendBatch,
  createSendProbe,
  createTally,
  type GameDifferenceKind,
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
  readonly deliveryMaxMs?: number;
  /** Ends the sending early; what was sent is still compared. */
  readonly stop: AbortSignal;
  onProgress(line: string): void;
}

export type SimulationResult = Awaited<ReturnType<typeof simulate>>;

/** Enough open requests to use two cores of a stack, few enough to need only some megabytes for bodies. */
const OPEN_BATCHES_MAX = { asFastAsPossible: 16, openLoop: 128 };
const BATCHES_PER_PROBE = 40;
const POLL_MS = 1000;

/** Sends the traffic, waits until the consumers have caught up, and compares. */
export async function simulate(options: SimulationOptions) {
  const run = createRun(options.seed, Date.now());
  const state = createState(run);
  const { ledger, cast, tally, differences } = state;
  const startMs = performance.now();
  const ways = await sendTraffic(state, options);
  const sentMs = performance.now() - startMs;

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
    settledMs: performance.now() - startMs - sentMs,
    unknownMessages: ledger.count('unknown'),
    reconciliation: settled.result,
    doubtfulHouseholds: cast.doubtfulHouseholds,
    ways: ways.size,
    differences: [...differences.byKind(), ...settled.differences.byKind()],
  };
}

const createState = (run: Run) => ({
  run,
  ledger: createLedger(),
  cast: createCast(),
  tally: createTally(),
  differences: createDifferences<GameDifferenceKind>(),
});
type State = ReturnType<typeof createState>;

/** Sends until time, messages or an interruption end it. @returns names of what was broken */
async function sendTraffic(state: State, options: SimulationOptions): Promise<Set<string>> {
  const { run, tally } = state;
  const { keyHeader, publishableKey, secretKey, deliveryMaxMs: totalMaxMs, onProgress } = options;
  const client = openHttpClient(options.gateway);
  const senderOptions = { ...state, client, keyHeader, publishableKey, totalMaxMs };
  const sendBatch = createSendBatch(senderOptions);
  const traffic = createTraffic({ ...state, players: options.players, brokenShare: options.brokenShare });
  const lanes = createLanes(options.rate === 0 ? OPEN_BATCHES_MAX.asFastAsPossible : OPEN_BATCHES_MAX.openLoop);
  // Probes share one lane, after those of all households.
  const sendProbe = createSendProbe(senderOptions);
  const probes = createRounds(
    createRandom(run.seed),
    createProbes({ ...state, keyHeader, publishableKey, secretKey }),
    (probe) => lanes.start(traffic.households.length, () => sendProbe(probe)),
  );
  onProgress(`run ${run.tag}, seed ${run.seed}: ${traffic.households.length} households`);

  const ways = new Set<string>();
  const pace = createPace(options.rate);
  const startMs = performance.now();
  const isOver = () => options.stop.aborted || performance.now() - startMs >= options.durationMaxMs;
  const progress = setInterval(() => onProgress(sendingLine(tally, lanes.running, startMs)), POLL_MS);
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

function sendingLine(tally: Tally, open: number, startMs: number): string {
  const seconds = (performance.now() - startMs) / 1000;
  const retries = [...tally.retries.values()].reduce((sum, value) => sum + value, 0);
  return (
    `${seconds.toFixed(0)} s: sent ${tally.messages}, accepted ${tally.accepted}, rejected ${tally.rejected}, ` +
    `${(tally.messages / seconds).toFixed(0)} messages/s, ${open} batches open, ${retries} retries`
  );
}

const CLEAN = 'All accepted messages are stored once, every rejection and every person is as expected.';

export function toReport(result: SimulationResult): RunReport {
  const { run, tally, reconciliation: rows, unknownMessages, differences } = result;
  const seconds = result.sentMs / 1000;
  const facts = {
    sent: { batches: tally.batches, messages: tally.messages, bytes: tally.bytes, seconds: round(seconds) },
    messagesPerSecond: round(tally.messages / seconds),
    resentBatches: tally.resentBatches,
    lostAnswers: tally.lostAnswers,
    repeatedTries: Object.fromEntries(tally.retries),
    accepted: tally.accepted,
    rejected: tally.rejected,
    rejectedByCode: Object.fromEntries(tally.rejectedByCode),
    unknown: { batches: tally.unknownBatches, messages: unknownMessages, stored: rows.unknownStored },
    probes: tally.probes,
    ways: result.ways,
    rows: { raw: rows.raw, exact: rows.exact },
    persons: { ...rows.persons, householdsLeftOut: result.doubtfulHouseholds },
    acknowledgedMs: quantilesOf(tally.latency),
    settleSeconds: round(result.settledMs / 1000),
  };
  return { run, facts, clean: CLEAN, differences };
}
