import type { Stores } from '@playline/testkit';
import { createRow, type Effects, type FaultTrial, runSeed } from './world/report.ts';
import { poisonWriter, replayDeadLetters } from './writer-dead-letters.ts';
import * as engineFaults from './writer-engine.ts';
import { assertExact, assertSame, fillEngineWithParts, loseResponses, stopClickHouse } from './writer-engine.ts';
import { overloadPartition } from './writer-hot.ts';
import { createKillRun, freezeWriter, planKill } from './writer-kill.ts';
import { openWriterRig, WRITER_WITHOUT_INTENTS, type WriterRig } from './writer-rig.ts';
import { type EngineOptions, startTestEngine, type TestEngine } from './writer-test-engine.ts';

interface WriterFault {
  readonly fault: number;
  /** The guarantee, as a test title. If present, `npm run test:all` tries the fault. */
  readonly title?: string;
  readonly tried: string;
  readonly partitions: number;
  /** Each seed needs empty topics, because it counts all records in the topics. */
  readonly needsEmptyTopics?: boolean;
  readonly engine?: EngineOptions;
  /** @returns a function that runs one seed and returns the effects, and throws if a guarantee is violated */
  open(rig: WriterRig, options: WriterFaultOptions & { engine: TestEngine | null }): (seed: number) => Promise<Effects>;
}

const onTestEngine = (
  run: (rig: engineFaults.EngineRig, seed: number) => Promise<Effects>,
  engine: EngineOptions = {},
): Pick<WriterFault, 'fault' | 'partitions' | 'engine' | 'open'> => ({
  fault: 5,
  partitions: 2,
  engine,
  open: (rig, options) => (seed) => run({ rig, engine: options.engine! }, seed),
});

export interface WriterFaultOptions {
  readonly seeds: number;
  readonly outageMs: number;
  /** Uses a writer without intents. Seeds that kill the writer between an insert and its commit should fail. */
  readonly withoutIntents: boolean;
}

/** Short, because each kill costs this much time, but long enough for heartbeats on a busy machine. */
export const SESSION_TIMEOUT_MS = 1_500;

export const WRITER_FAULTS: readonly WriterFault[] = [
  {
    fault: 3,
    title:
      'every record has one raw row after a writer is killed at any step of a block and its last request arrives late',
    tried: 'writer SIGKILL at each step of a block and at any time; its last request arrives late or never',
    partitions: 2,
    open: (rig, { withoutIntents }) => {
      const run = createKillRun(rig, withoutIntents ? WRITER_WITHOUT_INTENTS : undefined);
      return async (seed) => {
        const plan = planKill(seed);
        const { differences, reached } = await run(plan);
        assertSame(differences);
        await assertExact(rig);
        return { [`killed ${plan.point}`]: Number(reached) };
      };
    },
  },
  {
    fault: 4,
    title: 'writers store every record once if one writer is frozen past its session timeout, replaced and resumed',
    tried: 'writer SIGSTOP past its session timeout, replaced, SIGCONT',
    partitions: 4,
    open: (rig) => (seed) => freezeWriter(rig, seed),
  },
  {
    fault: 5,
    title: 'a writer is not ready while ClickHouse is unavailable, and then stores every record once',
    tried: 'ClickHouse unavailable under load',
    partitions: 2,
    open: (rig, options) => (seed) => stopClickHouse(rig, { seed, forMs: options.outageMs }),
  },
  {
    fault: 5,
    tried: 'ClickHouse responds with TOO_MANY_PARTS',
    partitions: 2,
    open: (rig) => (seed) => fillEngineWithParts(rig, seed),
  },
  {
    fault: 5,
    tried: 'responses to successful inserts are lost',
    partitions: 2,
    open: (rig) => (seed) => loseResponses(rig, seed),
  },
  {
    fault: 5,
    tried: 'blocks exceed an insert’s memory limit',
    partitions: 2,
    open: (rig) => (seed) => engineFaults.refuseLargeBlocks(rig, seed),
  },
  { ...onTestEngine(engineFaults.stopEngineGracefully), tried: 'ClickHouse stopped gracefully under load, restarted' },
  {
    ...onTestEngine(engineFaults.exhaustMemory, { memoryMaxBytes: engineFaults.ENGINE_MEMORY_BYTES }),
    tried: 'analysts use all memory of the ClickHouse server',
  },
  {
    ...onTestEngine(engineFaults.fillDisk, { prepareData: engineFaults.mountSmallDisk }),
    tried: 'ClickHouse’s disk is full',
  },
  { ...onTestEngine(engineFaults.rotatePassword), tried: 'the writer’s ClickHouse password is changed, then restored' },
  {
    ...onTestEngine(engineFaults.losePart),
    title: 'a writer stores every record once if ClickHouse has recorded an insert’s token but lost its rows',
    tried: 'ClickHouse has an insert’s token but lost its rows',
  },
  {
    fault: 8,
    title:
      'unreadable records are kept unchanged as dead letters and do not delay valid ones, even if the writer is killed',
    tried: 'unreadable and valid records, writer SIGKILL',
    partitions: 2,
    needsEmptyTopics: true,
    open: (rig) => (seed) => poisonWriter(rig, seed),
  },
  {
    fault: 8,
    tried: 'dead letter replay SIGKILL during its transactions',
    partitions: 2,
    needsEmptyTopics: true,
    open: (rig) => (seed) => replayDeadLetters(rig, seed),
  },
  {
    fault: 10,
    title: 'a writer keeps up on all other partitions while inserts for the busiest partition are blocked',
    tried: 'one identity sends half of the traffic, inserts for its partition are blocked',
    partitions: 6,
    open: (rig) => (seed) => overloadPartition(rig, seed),
  },
];

/** @param isChosen selects the `WRITER_FAULTS` to run */
export function createWriterTrials(
  stores: () => Promise<Stores>,
  { isChosen, ...options }: WriterFaultOptions & { isChosen: (fault: WriterFault) => boolean },
): FaultTrial[] {
  return WRITER_FAULTS.filter(isChosen).map((each) => createWriterTrial(each, stores, options));
}

async function openRig(fault: WriterFault, stores: Stores, options: WriterFaultOptions) {
  const engine = fault.engine === undefined ? null : await startTestEngine(fault.engine);
  const close = async (rig?: WriterRig) => {
    try {
      await rig?.close();
    } finally {
      await engine?.close();
    }
  };
  try {
    const rigStores = engine === null ? stores : { ...stores, clickhouse: engine.address };
    const rig = await openWriterRig(rigStores, { partitions: fault.partitions, sessionTimeoutMs: SESSION_TIMEOUT_MS });
    const run = fault.open(rig, { ...options, engine });
    return { rig, run, counted: { records: 0, rows: 0 }, close: () => close(rig) };
  } catch (error) {
    await close();
    throw error;
  }
}

function createWriterTrial(fault: WriterFault, stores: () => Promise<Stores>, options: WriterFaultOptions): FaultTrial {
  const row = createRow(fault, options.seeds);
  let opened: Awaited<ReturnType<typeof openRig>> | null = null;
  const close = async () => {
    const closing = opened;
    opened = null;
    await closing?.close();
  };
  const run = async (seed: number) => {
    opened ??= await openRig(fault, await stores(), options);
    const { rig, run, counted } = opened;
    // Data from a failed seed could make the next seed fail.
    let isUsable = false;
    try {
      const effects = await run(seed);
      const { records, rows } = await rig.totals();
      const sent = records - counted.records;
      const end = { effects, sent, acknowledged: sent, published: sent, rows: rows - counted.rows };
      Object.assign(counted, { records, rows });
      isUsable = fault.needsEmptyTopics !== true;
      return end;
    } finally {
      if (!isUsable) await close();
    }
  };
  return { row, title: fault.title, trySeed: (seed) => runSeed(row, seed, () => run(seed)), close };
}
