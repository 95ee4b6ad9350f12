/** The eraser consumes requests, restores fences, and erases while it leads. */
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
import type { Closable, Logger, Metrics, Tracing } from '@playline/runtime';
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
import { createEraserMetrics, type EraserMetrics, secondsBetween, type WaitingWork } from './eraser-metrics.ts';
import { MAINTENANCE_TASKS, openMaintenance, type Schedule } from './maintenance.ts';
import type { BatchParts, Step } from './steps/erase-batch.ts';
import { createLogBarrier, type Groups } from './steps/log-barrier.ts';

export interface EraserParts {
  readonly people: People;
  readonly records: ErasureRecords;
  readonly rows: ErasureRows;
  readonly producer: Producer;
  readonly reader: LogReader;
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  readonly schemaOf: SchemaSource;
  readonly groups: Groups;
  readonly topicPrefix: string;
  readonly generation: number;
  readonly windowMs: number;
  readonly batchRequestsMax: number;
  readonly schedule: Schedule;
  readonly wallClockMs: () => number;
  readonly metrics: Metrics;
  readonly tracing: Pick<Tracing, 'find' | 'resume'> | null;
  readonly logger: Logger;
}

export interface Eraser extends Closable {
  readonly ready: ReadinessChecks;
  /** Reasons why requests are not being consumed, by `topic/partition`. */
  blockers(): Readonly<Record<string, string>>;
}

/** The owner of this partition of the request topic leads. */
const LEADING_PARTITION = 0;
const SECONDS_PER_HOUR = 3_600;

/**
 * Every process consumes requests, and the leader erases. Two concurrent leaders are harmless because all steps are
 * idempotent and steps that must not follow the release are refused.
 */
export async function openEraser(parts: EraserParts): Promise<Eraser> {
  const { people, wallClockMs } = parts;
  const metrics = createEraserMetrics(parts.metrics, { readWaiting: () => readWaiting(parts), wallClockMs });
  const workers = openWorkers(parts, metrics);
  const fences = openFenceKeeper({ ...parts, onRestored: metrics.countFenceRestore });
  // Assignments are counted because a revocation may arrive after the next assignment of the leading partition.
  let assignments = 0;
  const consumer = await parts.openConsumer({
    onBatch: createIntake({ ...parts, onRequests: workers.loop.wake }),
    async onAssign({ partition, committed }: AssignedPartition) {
      if (partition === LEADING_PARTITION) {
        assignments++;
        for (const worker of Object.values(workers)) worker.lead();
      }
      return committed;
    },
    onRevoke: (_topic, partition) => {
      if (partition !== LEADING_PARTITION) return;
      assignments = Math.max(0, assignments - 1);
      if (assignments === 0) for (const worker of Object.values(workers)) void worker.stopLeading();
    },
  });
  return {
    ready: { consumer: () => consumer.ready(), people: () => people.ready(), broker: () => parts.producer.ready() },
    blockers: () => Object.fromEntries(consumer.blockers()),
    async close() {
      await Promise.all(Object.values(workers).map((each) => each.close()));
      await consumer.close();
      await fences.close();
    },
  };
}

function openWorkers(parts: EraserParts, metrics: EraserMetrics) {
  const { logger } = parts;
  let step: Step | 'take' = 'take';
  const loop = openBatchLoop({
    ...toBatchParts(parts, metrics.countRepublished),
    logger,
    windowMs: parts.windowMs,
    batchRequestsMax: parts.batchRequestsMax,
    onStep: (started) => {
      step = started;
    },
    onPoll: () => {
      step = 'take';
    },
    onFault: () => metrics.countFault(step),
    isHealthy: async () =>
      (await Promise.all([parts.people.ready(), parts.rows.ready(), parts.producer.ready()])).every((each) => each),
    deferred: metrics.deferred,
    onHandover: metrics.countHandover,
    startBatch: () => {
      const end = metrics.startBatch();
      return (receipts) => {
        end(receipts);
        for (const { traceId } of receipts) parts.tracing?.find(traceId)?.end();
      };
    },
  });
  const maintenance = openMaintenance({
    ...parts,
    onSurvivors: (survivors) => {
      for (const { table, rows } of survivors) metrics.countSurvivors(table, rows);
    },
    onLead: () => {
      for (const work of MAINTENANCE_TASKS) metrics.recordMaintenance(work);
    },
    onDone: metrics.recordMaintenance,
    onFault: metrics.countFault,
  });
  return { loop, maintenance };
}

function toBatchParts(parts: EraserParts, countRepublished: (links: number) => void): BatchParts {
  const { people, rows, records, reader, producer, groups, schemaOf, topicPrefix, generation, logger, wallClockMs } =
    parts;
  const onLost = (facts: number) =>
    logger.error({ facts }, 'cannot restore later links of erased people: the links are no longer in the log');
  return {
    people,
    rows,
    records,
    generation,
    wallClockMs,
    barrier: createLogBarrier({ reader, groups, schemaOf, topicPrefix }),
    republishLater: async (batchId) => {
      const links = await republishLaterLinks({ rows, reader, producer, topicPrefix, generation, onLost }, batchId);
      countRepublished(links);
    },
  };
}

/** @throws store faults */
async function readWaiting({ people, records, wallClockMs }: EraserParts): Promise<WaitingWork> {
  const requests = await records.readUnfinished();
  let holdsOverAnHour = 0;
  for (const environmentId of await records.readEnvironments())
    for (const { cutoffMs } of await people.guards.listHolds(environmentId))
      if (secondsBetween(cutoffMs, wallClockMs()) > SECONDS_PER_HOUR) holdsOverAnHour++;
  return { requests: requests.length, oldestAt: requests[0]?.requestedAt ?? null, holdsOverAnHour };
}

interface FenceKeeperParts {
  readonly people: Pick<People, 'guards'>;
  readonly records: Pick<ErasureRecords, 'readFences' | 'readUnfinished' | 'readProgress'>;
  readonly logger: Logger;
  readonly onRestored: () => void;
}

/** Interval between checks for a Redis restart. A check takes ten microseconds. */
const CHECK_MS = 500;
const RETRY_MS = 1_000;

/** Restores holds and fences after Redis was restarted or promoted. Runs in every process. */
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
        // Log only once per outage.
        if (!isLogged && !stop.signal.aborted) parts.logger.warn({ error }, 'checking fences failed; retrying');
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

/** Restores fences if any may be missing. If Redis has no epoch, the rebuild restores the fences. */
async function restoreFences(parts: FenceKeeperParts, signal: AbortSignal): Promise<void> {
  const { people, records, logger, onRestored } = parts;
  const { run, isRestorable, lacks } = await people.guards.fenceStatus();
  if (!isRestorable) return;
  const isLacking = ({ environmentId }: { readonly environmentId: string }) => lacks(environmentId);
  await restoreHolds(parts, isLacking);
  const removed = await enforceFences(people.guards, filterAsync(records.readFences({ signal }), isLacking));
  // Redis was restarted in the meantime. The next check restores the fences.
  if (!(await people.guards.completeFences(run))) return;
  onRestored();
  const sum = (count: 'links' | 'consents') => [...removed.values()].reduce((total, each) => total + each[count], 0);
  logger.info({ links: sum('links'), consents: sum('consents') }, 'fences restored after Redis restart');
}

async function* filterAsync<R>(rows: AsyncIterable<R>, isWanted: (row: R) => boolean): AsyncGenerator<R> {
  for await (const row of rows) if (isWanted(row)) yield row;
}

/** Recreates lost holds and releases the holds of finished erasures. */
async function restoreHolds(
  { people: { guards }, records }: FenceKeeperParts,
  isLacking: (request: HoldName) => boolean,
): Promise<void> {
  const toId = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
  const closures = new Map((await records.readProgress()).map((progress) => [toId(progress), progress.closureKeys]));
  const created: HoldName[] = [];
  for (const request of (await records.readUnfinished()).filter(isLacking)) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    const closure = closures.get(toId(request));
    // An existing hold may contain more identities than the request.
    if (closure === undefined && (await guards.confirmHold(request))) continue;
    const keys = closure ?? [...subjectKeys, ...memberKeys];
    await guards.putHold({ environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null });
    created.push(request);
  }
  // Another process may have finished some erasures in the meantime. Receipts are stored before the release.
  const unfinished = new Set((await records.readUnfinished()).map(toId));
  for (const name of created) if (!unfinished.has(toId(name))) await guards.releaseHold(name);
}

interface RepublishParts extends Pick<EraserParts, 'reader' | 'topicPrefix' | 'generation'> {
  readonly rows: Pick<ErasureRows, 'findLaterLinks'>;
  readonly producer: Pick<Producer, 'send'>;
  /** Called with the number of facts that are no longer in the log. */
  readonly onLost: (facts: number) => void;
}

/**
 * Republishes links later than the cut-off that were removed with the person because they were applied before the
 * hold. The linker parks these links until the release and then decides them a second time.
 * @returns the number of facts
 * @throws StoreFault, or a broker error, after which the call may be retried
 */
async function republishLaterLinks(parts: RepublishParts, batchId: Buffer): Promise<number> {
  const links = await parts.rows.findLaterLinks(batchId);
  const topic = parts.topicPrefix + TOPICS.identityLinks.name;
  let count = 0;
  let facts: OutgoingRecord[] = [];
  const send = async () => {
    await sendAll(parts.producer, facts);
    count += facts.length;
    facts = [];
  };
  for (const { partition, offsets } of toRanges(links.filter(({ generation }) => generation === parts.generation))) {
    const wanted = new Set(offsets);
    const range = { topic, partition, start: offsets[0]!, end: offsets.at(-1)! + 1 };
    for await (const record of parts.reader.read(range)) {
      if (record.value === null || !wanted.has(record.offset)) continue;
      if (facts.push(toOutgoing(record)) === FACTS_PER_CALL) await send();
    }
  }
  await send();
  if (count < links.length) parts.onLost(links.length - count);
  return count;
}

/** Limits memory because a person may have a hundred thousand facts. */
const FACTS_PER_CALL = 1_000;
/** Facts within this distance are read together because a fetch takes as long as reading a few hundred records. */
const GAP_MAX = 500;

function toRanges(links: readonly FactLocation[]): { partition: number; offsets: number[] }[] {
  const ranges: { partition: number; offsets: number[] }[] = [];
  for (const { partition, offset } of links.toSorted((a, b) => a.partition - b.partition || a.offset - b.offset)) {
    const last = ranges.at(-1);
    if (last?.partition === partition && offset - last.offsets.at(-1)! <= GAP_MAX) last.offsets.push(offset);
    else ranges.push({ partition, offsets: [offset] });
  }
  return ranges;
}

function toOutgoing({ topic, key, value, headers, offset }: StreamRecord): OutgoingRecord {
  const kept = Object.entries(headers).filter((header): header is [string, string | Buffer] => header[1] !== undefined);
  const first = { [WAITING_HEADERS.firstOffset]: String(offset) };
  return { topic, key, value: value!, headers: { ...first, ...Object.fromEntries(kept) } };
}

interface IntakeParts {
  readonly people: Pick<People, 'guards'>;
  readonly records: Pick<ErasureRecords, 'addRequests' | 'readUnfinished'>;
  readonly schemaOf: SchemaSource;
  readonly producer: Producer;
  /** A span covers the time from the request to its receipt, if the same process completes the erasure. */
  readonly tracing: Pick<Tracing, 'resume'> | null;
  readonly logger: Logger;
  readonly onRequests: () => void;
}

/** Creates the batch handler, which creates holds and stores requests before their offsets are committed. */
export function createIntake(parts: IntakeParts): BatchHandler['onBatch'] {
  const read = createRecordReader({ schemaOf: parts.schemaOf, createReader: erasureRequestCodec.decoderOf });
  return async (records) => {
    const requests: ErasureRequestRecord[] = [];
    const deadLetters: DeadLetter[] = [];
    for (const record of records) {
      const decoded = await retryable('cannot read a request schema', async () => read(record.value));
      const reason = decoded.kind === 'record' ? findRequestFault(decoded.record) : decoded.reason;
      if (decoded.kind === 'record' && reason === null) {
        requests.push(decoded.record);
        parts.tracing?.resume({ name: 'erase', kind: 'consumer' }, record.headers.traceparent);
      } else deadLetters.push({ record, reason: reason ?? '' });
    }
    await retryable('cannot store requests', () => storeRequests(parts, requests));
    await retryable('cannot write dead letters', () => sendDeadLetters(parts.producer, deadLetters, 'intake'));
    if (deadLetters.length > 0) parts.logger.warn({ count: deadLetters.length }, 'dead letters written');
    if (requests.length > 0) parts.onRequests();
  };
}

/** A request may be redelivered after its receipt, in which case its new hold is released immediately. */
async function storeRequests({ people: { guards }, records }: IntakeParts, requests: readonly ErasureRequestRecord[]) {
  if (requests.length === 0) return;
  for (const request of requests) {
    const { environmentId, erasureId, subjectKeys, memberKeys, cutoffAt: cutoffMs } = request;
    // An existing hold may already contain the whole closure.
    if (await guards.confirmHold({ environmentId, erasureId })) continue;
    const keys = [...subjectKeys, ...memberKeys];
    await guards.putHold({ environmentId, erasureId, keys, cutoffMs, lapsesAtMs: null });
  }
  await records.addRequests(requests);
  // Read after the hold was created because a release follows its receipt.
  const unfinished = new Set((await records.readUnfinished()).map(({ erasureId }) => erasureId.toString('hex')));
  for (const request of requests)
    if (!unfinished.has(request.erasureId.toString('hex'))) await guards.releaseHold(request);
}

async function retryable<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new RetryableFault(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
