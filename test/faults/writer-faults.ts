import type { Stores } from '@playline/testkit';
import { addFailure, createRow, type Row } from './world/report.ts';
import { fillEngineWithParts, loseAnswers, takeEngineAway } from './writer-engine.ts';
import { assertExact, assertSame } from './writer-exact.ts';
import { freezeWriter } from './writer-freeze.ts';
import { overloadPartition } from './writer-hot.ts';
import { createKillRun, planKill } from './writer-kill.ts';
import { poisonWriter } from './writer-poison.ts';
import { rebalanceWriters } from './writer-rebalance.ts';
import { replayLetters } from './writer-replay.ts';
import { openWriterRig, WRITER_WITHOUT_INTENTS, type WriterRig } from './writer-rig.ts';

/** A fault of the writer, tried on topics and tables of its own. */
interface WriterFault {
  readonly fault: number;
  readonly tried: string;
  readonly partitions: number;
  /** Each seed begins with empty topics: it counts everything there is. */
  readonly isAlone?: boolean;
  /** @returns what one seed does; it throws when the end is not as promised */
  open(rig: WriterRig, options: WriterFaultOptions): (seed: number) => Promise<void>;
}

export interface WriterFaultOptions {
  /** How long the engine stays away. */
  readonly awayMs: number;
  /** Kills writers without intents instead: every seed but those that kill before the intent should fail. */
  readonly withoutIntents: boolean;
}

/** The shortest in which heartbeats of a busy machine still come: every kill waits for it. */
const SESSION_TIMEOUT_MS = 1_500;

const FAULTS: readonly WriterFault[] = [
  {
    fault: 3,
    tried: 'writer SIGKILL at each step of a block and at any moment; what it held arrives late, or never',
    partitions: 2,
    open: (rig, { withoutIntents }) => {
      const kills = createKillRun(rig, withoutIntents ? WRITER_WITHOUT_INTENTS : undefined);
      return async (seed) => {
        assertSame((await kills.run(planKill(seed))).differences);
        await assertExact(rig);
      };
    },
  },
  {
    fault: 4,
    tried: 'writer SIGSTOP past its session, replaced, SIGCONT',
    partitions: 4,
    open: (rig) => (seed) => freezeWriter(rig, seed),
  },
  {
    fault: 5,
    tried: 'ClickHouse away under load',
    partitions: 2,
    open:
      (rig, { awayMs }) =>
      (seed) =>
        takeEngineAway(rig, { seed, forMs: awayMs }),
  },
  {
    fault: 5,
    tried: 'ClickHouse answers TOO_MANY_PARTS',
    partitions: 2,
    open: (rig) => (seed) => fillEngineWithParts(rig, seed),
  },
  {
    fault: 5,
    tried: 'answers to inserts that succeeded are lost',
    partitions: 2,
    open: (rig) => (seed) => loseAnswers(rig, seed),
  },
  {
    fault: 8,
    tried: 'records that cannot be read, writer SIGKILL among them',
    partitions: 2,
    isAlone: true,
    open: (rig) => (seed) => poisonWriter(rig, seed),
  },
  {
    fault: 8,
    tried: 'replay of dead letters SIGKILL within its transactions',
    partitions: 2,
    isAlone: true,
    open: (rig) => (seed) => replayLetters(rig, seed),
  },
  {
    fault: 10,
    tried: 'one identity half of the traffic, inserts of its partition stand still',
    partitions: 6,
    open: (rig) => (seed) => overloadPartition(rig, seed),
  },
  {
    fault: 11,
    tried: 'writers join, leave and are killed while inserts are on their way',
    partitions: 4,
    open: (rig) => (seed) => rebalanceWriters(rig, seed),
  },
];

export const WRITER_FAULTS: readonly number[] = FAULTS.map(({ fault }) => fault);

/** Faults of the writer, to be tried seed by seed. */
export interface WriterTrials {
  /** One row for each. */
  readonly rows: readonly Row[];
  /** Tries a seed with each of them. */
  trySeed(seed: number, say: (line: string) => void): Promise<void>;
  close(): Promise<void>;
}

/** @param fault only this one; null means all */
export function openWriterTrials(
  stores: Stores,
  { fault, ...options }: WriterFaultOptions & { fault: number | null },
): WriterTrials {
  const trials = FAULTS.filter((each) => fault === null || each.fault === fault).map((each) =>
    createTrial(each, stores, options),
  );
  return {
    rows: trials.map(({ row }) => row),
    async trySeed(seed, say) {
      for (const { row, run } of trials) {
        say(`fault ${row.fault}, seed ${seed}: ${row.tried}`);
        await run(seed).catch((error: Error) => {
          addFailure(row, seed, error);
          say(`fault ${row.fault}, FAULT_SEED=${seed} (${row.tried}): ${error.stack ?? error.message}`);
        });
      }
    },
    close: async () => void (await Promise.all(trials.map(({ close }) => close()))),
  };
}

function createTrial(fault: WriterFault, stores: Stores, options: WriterFaultOptions) {
  const row = createRow(fault);
  let opened: { rig: WriterRig; run: (seed: number) => Promise<void>; seen: { records: number; rows: number } } | null;
  opened = null;
  const open = async () => {
    const { partitions } = fault;
    const rig = await openWriterRig(stores, { partitions, sessionTimeoutMs: SESSION_TIMEOUT_MS });
    opened = { rig, run: fault.open(rig, options), seen: { records: 0, rows: 0 } };
    return opened;
  };
  const close = async () => {
    const { rig } = opened ?? {};
    opened = null;
    await rig?.close();
  };
  const run = async (seed: number) => {
    const { rig, run, seen } = opened ?? (await open());
    try {
      await run(seed);
      const { records, rows } = await rig.totals();
      row.seeds++;
      row.sent += records - seen.records;
      row.acknowledged += records - seen.records;
      row.published += records - seen.records;
      row.rows += rows - seen.rows;
      Object.assign(seen, { records, rows });
      if (fault.isAlone === true) await close();
    } catch (error) {
      // What a failed seed left behind would fail the next one, too.
      await close();
      throw error;
    }
  };
  return { row, run, close };
}
