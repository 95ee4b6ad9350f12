import {
  createRecordReader,
  type ErasureRequestRecord,
  erasureRequestCodec,
  type SchemaSource,
  TOPICS,
  WAITING_HEADERS,
} from '@playline/contracts';
import {
  type ErasureRecords,
  type ErasureRows,
  enforceFences,
  type FactLocation,
  findRequestFault,
} from '@playline/erasure';
import type { ReadinessChecks } from '@playline/http';
import type { HoldName, People } from '@playline/people';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';
import {
  type AssignedPartition,
  type BatchHandler,
  type Consumer,
  type DeadLetter,
  type LogReader,
  type OutgoingRecord,
  type Producer,
  RetryableFault,
  type StreamRecord,
  sendAll,
  sendDeadLetters,
} from '@playline/stream';
import { openBatchLoop } from './batch-loop.ts';
import { createEraserMetrics, type EraserMetrics, secondsBetween, type Waiting } from './eraser-metrics.ts';
import type { Leading } from './leading.ts';
import type { BatchParts, Step } from './steps/erase-batch.ts';
import { createLogBarrier, type Groups } from './steps/log-barrier.ts';
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
  blockers(): Readonly<Record<string, string>>;
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
    blockers: () => Object.fromEntries(consumer.blockers()),
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
    onPoll: () => {
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
    for (const { cutoffMs } of await people.guards.listHolds(environmentId))
      if (secondsBetween(cutoffMs, wallClockMs()) > AN_HOUR_S) holdsOverAnHour++;
  return { requests: requests.length, oldestAt: requests[0]?.requestedAt ?? null, holdsOverAnHour };
}

interface FenceKeeperParts {
  readonly people: Pick<People, 'guards' | 'readEpoch'>;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readProgress'>;
  readonly logger: Logger;
  /** Called when the fences were set again. */
  readonly onRestored: () => void;
}

/** How soon a start of Redis is noticed. Each check is one command of ten microseconds. */
const CHECK_MS = 500;
const RETRY_MS = 1_000;

/**
 * Sets the fences again whenever Redis was restarted or promoted, because it may have gone back to a state before them.
 * Until then Redis applies no link and returns no consent. Every eraser does this, whether or not it leads; several at
 * once do no harm.
 */
export function openFenceKeeper(parts: FenceKeeperParts): Closable {
  const stop = new AbortController();
  const watch = async () => {
    let isLogged = false;
    while (!stop.signal.aborted) {
      try {
        await restoreFences(parts, stop.signal);
        isLogged = false;
        await pause(CHECK_MS, stop.signal);
      } catch (error) {
        // One line for each outage, not one a second.
        if (!isLogged && !stop.signal.aborted) parts.logger.warn({ error }, 'fences cannot be checked or set again');
        isLogged = true;
        await pause(RETRY_MS, stop.signal);
      }
    }
  };
  const watching = watch();
  return {
    async close() {
      stop.abort();
      await watching;
    },
  };
}

/**
 * Places the holds of unfinished erasures and sets all fences again, and removes what both would have kept out. Does
 * nothing when no fence can be missing. A Redis without an epoch was emptied, and is rebuilt with its fences.
 */
async function restoreFences(parts: FenceKeeperParts, signal: AbortSignal): Promise<void> {
  const { people, records, logger, onRestored } = parts;
  const { run, isComplete } = await people.guards.fenceStatus();
  if (isComplete || (await people.readEpoch()) === null) return;
  await restoreHolds(parts);
  const removed = await enforceFences(people.guards, records.readFences({ signal }));
  // Another start of Redis may have lost them again. Then the next check finds that.
  if (!(await people.guards.completeFences(run))) return;
  onRestored();
  const sum = (count: 'links' | 'consents') => [...removed.values()].reduce((total, each) => total + each[count], 0);
  logger.info({ links: sum('links'), consents: sum('consents') }, 'fences set again after a start of Redis');
}

/** A hold that was lost is placed again; one of a finished erasure that came back is released. */
async function restoreHolds({ people: { guards }, records }: FenceKeeperParts): Promise<void> {
  const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
  const closures = new Map((await records.readProgress()).map((progress) => [toId(progress), progress.closureKeys]));
  const placed: HoldName[] = [];
  for (const request of await records.readUnfinished()) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    const closure = closures.get(toId(request));
    // A hold that exists may cover more identities than the request.
    if (closure === undefined && (await guards.confirmHold(request))) continue;
    const keys = closure ?? [...subjectKeys, ...memberKeys];
    await guards.putHold({ environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null });
    placed.push(request);
  }
  // A receipt is stored before the release: another process may have finished some of these.
  const unfinished = new Set((await records.readUnfinished()).map(toId));
  for (const name of placed) if (!unfinished.has(toId(name))) await guards.releaseHold(name);
}

interface PutBackParts {
  readonly rows: Pick<ErasureRows, 'findLaterLinks'>;
  readonly reader: LogReader;
  readonly producer: Pick<Producer, 'send'>;
  readonly topicPrefix: string;
  /** Generation of the link topic. */
  readonly generation: number;
  /** Called with the number of facts that could not be read again. */
  readonly onLost: (facts: number) => void;
}

/**
 * Publishes again the facts of links that are later than the erasure but left the graph with the person, because they
 * were applied before its hold took effect. They wait at the end of the link topic for the release and are then decided
 * again. The decision for a link that had not left the graph is `unchanged`. Their rows in ClickHouse are later than
 * the cut-off, and stay.
 * @returns the number of facts
 * @throws StoreFault, or an Error of the brokers; then it may be called again
 */
async function putBackLaterLinks(parts: PutBackParts, batchId: Buffer): Promise<number> {
  const places = await parts.rows.findLaterLinks(batchId);
  const topic = parts.topicPrefix + TOPICS.identityLinks.name;
  let count = 0;
  let facts: OutgoingRecord[] = [];
  const send = async () => {
    await sendAll(parts.producer, facts);
    count += facts.length;
    facts = [];
  };
  for (const { partition, offsets } of toRanges(places.filter(({ generation }) => generation === parts.generation))) {
    const wanted = new Set(offsets);
    const range = { topic, partition, start: offsets[0]!, end: offsets.at(-1)! + 1 };
    for await (const record of parts.reader.read(range)) {
      if (record.value === null || !wanted.has(record.offset)) continue;
      if (facts.push(toOutgoing(record)) === FACTS_A_CALL) await send();
    }
  }
  await send();
  if (count < places.length) parts.onLost(places.length - count);
  return count;
}

/** Facts that are sent together. A person may have a hundred thousand. */
const FACTS_A_CALL = 1_000;
/** Facts that are closer are read together: a request of the log takes as long as some hundred records. */
const GAP_MAX = 500;

/** Places in ranges of the log, in its order. */
function toRanges(places: readonly FactLocation[]): { partition: number; offsets: number[] }[] {
  const ranges: { partition: number; offsets: number[] }[] = [];
  for (const { partition, offset } of places.toSorted((a, b) => a.partition - b.partition || a.offset - b.offset)) {
    const last = ranges.at(-1);
    if (last?.partition === partition && offset - last.offsets.at(-1)! <= GAP_MAX) last.offsets.push(offset);
    else ranges.push({ partition, offsets: [offset] });
  }
  return ranges;
}

function toOutgoing({ topic, key, value, headers, offset }: StreamRecord): OutgoingRecord {
  const kept = Object.entries(headers).filter((header): header is [string, string | Buffer] => header[1] !== undefined);
  return {
    topic,
    key,
    value: value!,
    headers: { [WAITING_HEADERS.firstOffset]: String(offset), ...Object.fromEntries(kept) },
  };
}

interface IntakeParts {
  readonly people: Pick<People, 'guards'>;
  readonly records: Pick<ErasureRecords, 'addRequests' | 'readUnfinished'>;
  readonly schemaOf: SchemaSource;
  readonly producer: Producer;
  readonly logger: Logger;
  /** Called when requests have been stored. */
  readonly onRequests: () => void;
}

/**
 * Creates the step that takes requests from their topic. Each gets its hold (a gateway may have died before it
 * confirmed it), and is stored in `erasure_requests` before its offset is committed. Nothing is erased here, so no
 * request waits for another.
 */
export function createIntake(parts: IntakeParts): BatchHandler['onBatch'] {
  const read = createRecordReader({ schemaOf: parts.schemaOf, createReader: erasureRequestCodec.decoderOf });
  return async (records) => {
    const requests: ErasureRequestRecord[] = [];
    const letters: DeadLetter[] = [];
    for (const record of records) {
      const answer = await retryable('the schema of a request', async () => read(record.value));
      const reason = answer.kind === 'record' ? findRequestFault(answer.record) : answer.reason;
      if (answer.kind === 'record' && reason === null) requests.push(answer.record);
      else letters.push({ record, reason: reason ?? '' });
    }
    await retryable('the requests', () => takeAll(parts, requests));
    await retryable('the dead letters', () => sendDeadLetters(parts.producer, letters, 'intake'));
    if (letters.length > 0) parts.logger.warn({ count: letters.length }, 'requests went to the dead letters');
    if (requests.length > 0) parts.onRequests();
  };
}

/** Takes requests. One may come again long after it was done; its new hold is released at once. */
async function takeAll({ people: { guards }, records }: IntakeParts, requests: readonly ErasureRequestRecord[]) {
  if (requests.length === 0) return;
  for (const request of requests) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    // An existing hold may cover more identities by now: the whole closure of the erasure.
    if (await guards.confirmHold({ environmentId, erasureId })) continue;
    await guards.putHold({
      environmentId,
      erasureId,
      keys: [...subjectKeys, ...memberKeys],
      cutoffMs,
      lapsesAtMs: null,
    });
  }
  await records.addRequests(requests);
  // Read after the hold was placed: if the receipt comes later, its release follows.
  const unfinished = new Set((await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex')));
  for (const request of requests)
    if (!unfinished.has(request.erasureId.toString('hex'))) await guards.releaseHold(request);
}

/** Turns every fault of the stores into a retryable one, so that requests wait. */
async function retryable<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new RetryableFault(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
