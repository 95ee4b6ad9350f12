import type { Stores } from '@playline/testkit';
import type { Reached } from './world/reached.ts';
import { addFailure, addSeed, createRow, type Row } from './world/report.ts';
import { fillEngineWithParts, loseAnswers, takeEngineAway } from './writer-engine.ts';
import { assertExact, assertSame } from './writer-exact.ts';
import { freezeWriter } from './writer-freeze.ts';
import { overloadPartition } from './writer-hot.ts';
import { createKillRun, planKill } from './writer-kill.ts';
import { type OwnEngine, type OwnEngineOptions, openOwnEngine } from './writer-own-engine.ts';
import { poisonWriter } from './writer-poison.ts';
import { rebalanceWriters } from './writer-rebalance.ts';
import { replayDeadLetters } from './writer-replay.ts';
import { openWriterRig, WRITER_WITHOUT_INTENTS, type WriterRig } from './writer-rig.ts';
import {
  ENGINE_MEMORY_BYTES,
  exhaustMemory,
  fillDisk,
  losePart,
  mountSmallDisk,
  refuseLargeBlocks,
  rotatePassword,
  type StarvedRig,
  stopEngineGracefully,
} from './writer-starved-engine.ts';

/** A fault of the writer, tested with separate topics and tables. */
interface WriterFault {
  readonly fault: number;
  readonly tried: string;
  readonly partitions: number;
  /** True when each seed needs empty topics, because it counts everything in them. */
  readonly isAlone?: boolean;
  /** Present when the fault stops, starves or fills ClickHouse, so that it needs a separate server. */
  readonly engine?: OwnEngineOptions;
  /** @returns a function that runs one seed and returns what took effect. It throws when a promise is broken */
  open(rig: WriterRig, options: WriterFaultOptions & { engine: OwnEngine | null }): (seed: number) => Promise<Reached>;
}

/** A fault of ClickHouse itself, tested on a separate server. */
function onOwnEngine(
  tried: string,
  engine: OwnEngineOptions,
  run: (rig: StarvedRig, seed: number) => Promise<Reached>,
): WriterFault {
  // The trial opens the server before the rig and passes it on. This only names what runs on it.
  return {
    fault: 5,
    tried,
    partitions: 2,
    engine,
    open:
      (rig, { engine }) =>
      (seed) =>
        run({ rig, engine: engine! }, seed),
  };
}

export interface WriterFaultOptions {
  /** Number of seeds to try. */
  readonly seeds: number;
  /** How long ClickHouse stays down. */
  readonly awayMs: number;
  /** Tests a writer without intents instead. Seeds that kill it between an insert and its commit should fail. */
  readonly withoutIntents: boolean;
}

/** The shortest time in which heartbeats still arrive on a busy machine. Every kill waits for it. */
const SESSION_TIMEOUT_MS = 1_500;

const FAULTS: readonly WriterFault[] = [
  {
    fault: 3,
    tried: 'writer SIGKILL at each step of a block and at any moment; what it held arrives late, or never',
    partitions: 2,
    open: (rig, { withoutIntents }) => {
      const kills = createKillRun(rig, withoutIntents ? WRITER_WITHOUT_INTENTS : undefined);
      return async (seed) => {
        const plan = planKill(seed);
        const { differences, reached } = await kills.run(plan);
        assertSame(differences);
        await assertExact(rig);
        return { [`killed ${plan.point}`]: Number(reached) };
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
    fault: 5,
    tried: 'blocks too large for the memory that an insert may have',
    partitions: 2,
    open: (rig) => (seed) => refuseLargeBlocks(rig, seed),
  },
  onOwnEngine('ClickHouse stopped gracefully under load, restarted', {}, stopEngineGracefully),
  onOwnEngine('analysts take all memory of the server', { memoryMaxBytes: ENGINE_MEMORY_BYTES }, exhaustMemory),
  onOwnEngine('the disk of ClickHouse is full', { prepareData: mountSmallDisk }, fillDisk),
  onOwnEngine('the password of the writer changed and changed back', {}, rotatePassword),
  onOwnEngine('ClickHouse remembers the token of an insert and has lost its rows', {}, losePart),
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
    open: (rig) => (seed) => replayDeadLetters(rig, seed),
  },
  {
    fault: 10,
    tried: 'one identity half of the traffic, inserts of its partition are blocked',
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

export const WRITER_FAULTS: readonly Pick<Row, 'fault' | 'tried'>[] = FAULTS;

/** A fault of the writer that is tried seed by seed. */
export interface WriterTrial {
  readonly row: Row;
  /** Tries a seed and notes the result in the row. @returns the result as text */
  trySeed(seed: number): Promise<string>;
  close(): Promise<void>;
}

/** @param isChosen which of `WRITER_FAULTS` to run */
export function createWriterTrials(
  stores: Stores,
  { isChosen, ...options }: WriterFaultOptions & { isChosen: (row: Pick<Row, 'fault' | 'tried'>) => boolean },
): WriterTrial[] {
  return FAULTS.filter(isChosen).map((each) => createTrial(each, stores, options));
}

interface OpenedRig {
  readonly rig: WriterRig;
  readonly engine: OwnEngine | null;
  readonly run: (seed: number) => Promise<Reached>;
  readonly seen: { records: number; rows: number };
}

function createTrial(fault: WriterFault, stores: Stores, options: WriterFaultOptions): WriterTrial {
  const row = createRow(fault, options.seeds);
  let opened: OpenedRig | null = null;
  const open = async () => {
    const { partitions } = fault;
    const engine = fault.engine === undefined ? null : await openOwnEngine(fault.engine);
    const own = engine === null ? stores : { ...stores, clickhouse: engine.address };
    const rig = await openWriterRig(own, { partitions, sessionTimeoutMs: SESSION_TIMEOUT_MS });
    opened = { rig, engine, run: fault.open(rig, { ...options, engine }), seen: { records: 0, rows: 0 } };
    return opened;
  };
  const close = async () => {
    const { rig, engine } = opened ?? {};
    opened = null;
    try {
      await rig?.close();
    } finally {
      await engine?.close();
    }
  };
  const run = async (seed: number) => {
    const { rig, run, seen } = opened ?? (await open());
    try {
      const reached = await run(seed);
      const { records, rows } = await rig.totals();
      const sent = records - seen.records;
      const text = addSeed(row, seed, { reached, sent, acknowledged: sent, published: sent, rows: rows - seen.rows });
      Object.assign(seen, { records, rows });
      if (fault.isAlone === true) await close();
      return text;
    } catch (error) {
      // Leftovers of a failed seed would make the next one fail too.
      await close();
      throw error;
    }
  };
  const trySeed = async (seed: number) => {
    try {
      return await run(seed);
    } catch (error) {
      addFailure(row, seed, error);
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      return `fault ${row.fault}, FAULT_SEED=${seed} (${row.tried}): ${text}`;
    }
  };
  return { row, trySeed, close };
}
