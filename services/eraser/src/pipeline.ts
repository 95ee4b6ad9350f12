import type { SchemaSource } from '@playline/contracts';
import type { ErasureRecords, ErasureRows } from '@playline/erasure';
import type { ReadinessChecks } from '@playline/http';
import type { People } from '@playline/people';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import type { AssignedPartition, BatchHandler, Consumer, LogReader, Producer } from '@playline/stream';
import { openBatchLoop } from './batch-loop.ts';
import { createEraserMetrics, type EraserMetrics, secondsBetween, type Waiting } from './eraser-metrics.ts';
import { openFenceKeeper } from './fence-keeper.ts';
import type { Leading } from './leading.ts';
import type { BatchParts, Step } from './steps/erase-batch.ts';
import { createIntake } from './steps/intake.ts';
import { createLogBarrier, type Groups } from './steps/log-barrier.ts';
import { putBackLaterLinks } from './steps/put-back.ts';
import { openUpkeep, type Schedule, UPKEEP_WORK } from './upkeep.ts';

export interface EraserParts {
  readonly people: People;
  readonly records: ErasureRecords;
  readonly rows: ErasureRows;
  readonly producer: Producer;
  readonly reader: LogReader;
  /** Opens the consumer of the topic of requests. */
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  readonly schemaOf: SchemaSource;
  readonly groups: Groups;
  readonly topicPrefix: string;
  /** Generation of the link topic. */
  readonly generation: number;
  readonly windowMs: number;
  readonly batchRequestsMax: number;
  readonly schedule: Schedule;
  readonly wallClockMs: () => number;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export interface Eraser extends Closable {
  readonly ready: ReadinessChecks;
  /** Why requests are not taken, by `topic/partition`. */
  hindrances(): Readonly<Record<string, string>>;
}

/** The owner of this partition of the request topic does the batches, so one process at a time does. */
const LEADING_PARTITION = 0;
const AN_HOUR_S = 3_600;

/**
 * Opens the eraser: every process takes requests, one of them does the batches. If two believe that they lead, no harm
 * is done: every step may be repeated, and steps that must not follow the release are refused.
 */
export async function openEraser(parts: EraserParts): Promise<Eraser> {
  const { people } = parts;
  const metrics = createMetricsOf(parts);
  const workers = openWorkers(parts, metrics);
  const fences = openFenceKeeper({ ...parts, onRestored: metrics.countFenceRestore });
  const leadership = createLeadership(Object.values(workers));
  const consumer = await parts.openConsumer({
    onBatch: createIntake({ ...parts, onRequests: workers.loop.wake }),
    async onAssign({ partition, committed }: AssignedPartition) {
      if (partition === LEADING_PARTITION) leadership.assigned();
      return committed;
    },
    onRevoke: (_topic, partition) => {
      if (partition === LEADING_PARTITION) leadership.revoked();
    },
  });
  return {
    ready: {
      consumer: () => consumer.ready(),
      people: () => people.ready(),
      broker: () => parts.producer.ready(),
    },
    hindrances: () => Object.fromEntries(consumer.hindrances()),
    async close() {
      await Promise.all(Object.values(workers).map((each) => each.close()));
      await consumer.close();
      await fences.close();
    },
  };
}

/**
 * Counts assignments of the leading partition. The end of one may be reported after the start of the next, since it
 * waits for the last batch. Leading for too long does no harm, but some process must lead.
 */
function createLeadership(workers: readonly Leading[]) {
  let assignments = 0;
  return {
    assigned() {
      assignments++;
      for (const worker of workers) worker.lead();
    },
    revoked() {
      assignments = Math.max(0, assignments - 1);
      if (assignments === 0) for (const worker of workers) void worker.follow();
    },
  };
}

function createMetricsOf(parts: EraserParts): EraserMetrics {
  const waiting = { readWaiting: () => readWaiting(parts), wallClockMs: parts.wallClockMs };
  return createEraserMetrics(parts.metrics, waiting);
}

/** Opens the work of the leading process: batches of erasures, and the upkeep after them. */
function openWorkers(parts: EraserParts, metrics: EraserMetrics) {
  const { logger } = parts;
  let step: Step | 'take' = 'take';
  const loop = openBatchLoop({
    ...toBatchParts(parts, metrics.countPutBack),
    logger,
    windowMs: parts.windowMs,
    batchRequestsMax: parts.batchRequestsMax,
    onStep: (begun) => {
      step = begun;
    },
    onLook: () => {
      step = 'take';
    },
    onFault: () => metrics.countFault(step),
    isHealthy: async () =>
      (await Promise.all([parts.people.ready(), parts.records.ready(), parts.producer.ready()])).every((each) => each),
    aside: metrics.aside,
    onHandover: metrics.countHandover,
    startBatch: metrics.startBatch,
  });
  const upkeep = openUpkeep({
    ...parts,
    onSurvivors: (survivors) => {
      for (const { table, rows } of survivors) metrics.countSurvivors(table, rows);
    },
    onLead: () => {
      for (const work of UPKEEP_WORK) metrics.noteUpkeep(work);
    },
    onDone: metrics.noteUpkeep,
    onFault: metrics.countFault,
  });
  return { loop, upkeep };
}

function toBatchParts(parts: EraserParts, countPutBack: (links: number) => void): BatchParts {
  const { people, rows, records, reader, producer, groups, schemaOf, topicPrefix, generation, logger, wallClockMs } =
    parts;
  const onLost = (facts: number) =>
    logger.error({ facts }, 'later links of erased people stand in the log no more: they are not put back');
  return {
    people,
    rows,
    records,
    generation,
    wallClockMs,
    barrier: createLogBarrier({ reader, groups, schemaOf, topicPrefix }),
    putBack: async (batchId) => {
      const links = await putBackLaterLinks({ rows, reader, producer, topicPrefix, generation, onLost }, batchId);
      countPutBack(links);
    },
  };
}

/** @throws whatever the stores throw */
async function readWaiting({ people, records, wallClockMs }: EraserParts): Promise<Waiting> {
  const requests = await records.readUnfinished();
  let holdsOverAnHour = 0;
  for (const environmentId of await records.readEnvironments())
    for (const { cutoffMs } of await people.guards.list(environmentId))
      if (secondsBetween(cutoffMs, wallClockMs()) > AN_HOUR_S) holdsOverAnHour++;
  return { requests: requests.length, oldestAt: requests[0]?.requestedAt ?? null, holdsOverAnHour };
}
