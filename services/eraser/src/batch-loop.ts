/** Erases batches while this process leads, and isolates requests that cannot be resolved. */
import type { ErasureReceipt, ErasureRequest } from '@playline/erasure';
import type { Logger } from '@playline/runtime';
import { pause, pauseOrThrow } from '@playline/stores';
import { type LeaderTask, openLeaderTask } from './leading.ts';
import { type Batch, type BatchParts, beginBatch, finishBatch, toBatches } from './steps/erase-batch.ts';
import { isHeavy } from './steps/persons.ts';
import { TooManyLinksError } from './steps/resolve.ts';
import { toId } from './steps/settle.ts';

export interface BatchLoopParts extends BatchParts {
  readonly logger: Logger;
  /** How long requests are collected after the first request arrives. */
  readonly windowMs: number;
  readonly batchRequestsMax: number;
  readonly onPoll: () => void;
  readonly startBatch: () => (receipts: readonly ErasureReceipt[]) => void;
  readonly onFault: (fault: unknown) => void;
  /** Whether all stores respond, in which case a request caused the failure. */
  readonly isHealthy: () => Promise<boolean>;
  /** Ids of deferred requests, which cannot be resolved and are retried alone. */
  readonly deferred: Set<string>;
  /** Called when work stops because this process no longer leads. */
  readonly onHandover: () => void;
}

export interface BatchLoop extends LeaderTask {
  /** Polls for new requests immediately. */
  wake(): void;
}

/** Other processes store requests without waking this loop. */
const POLL_MS = 10_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 10_000;

/** Opens a loop that runs while this process leads. */
export function openBatchLoop(parts: BatchLoopParts): BatchLoop {
  const alarm = createAlarm();
  const leading = openLeaderTask((signal, run) => run(() => runBatches(parts, alarm, signal)));
  return { ...leading, wake: () => alarm.ring() };
}

async function runBatches(parts: BatchLoopParts, alarm: Alarm, signal: AbortSignal): Promise<void> {
  // If the signal is aborted, the requests did not cause the failure.
  const isHealthy = async () => !signal.aborted && (await parts.isHealthy());
  const queueParts = { ...parts, isHealthy, started: { batches: 0 } };
  const [queue, heavyQueue] = [new RequestQueue(queueParts), new RequestQueue(queueParts)];
  const queues = { queue, heavyQueue };
  const state: LoopState = { ...queues, retryAtMs: new Map(), heavy: new Set(), heavyWork: null, wake: alarm.ring };
  for (let retryMs = RETRY_MIN_MS; !signal.aborted; ) {
    try {
      const hasWorked = await runNext(parts, state, signal);
      retryMs = RETRY_MIN_MS;
      if (!hasWorked) await alarm.wait(POLL_MS, signal);
    } catch (error) {
      if (signal.aborted) {
        parts.onHandover();
        break;
      }
      parts.onFault(error);
      parts.logger.warn({ error, retryMs }, 'erasure step failed; retrying');
      await pause(retryMs, signal);
      retryMs = Math.min(2 * retryMs, RETRY_MAX_MS);
    }
  }
  await state.heavyWork;
  parts.deferred.clear();
}

interface LoopState {
  /** Time of the next attempt for each request (hexadecimal id) that waits for another erasure. */
  readonly retryAtMs: Map<string, number>;
  readonly queue: RequestQueue;
  /** Ids of heavy requests (for people who have many links) that are not in a batch yet. */
  readonly heavy: Set<string>;
  readonly heavyQueue: RequestQueue;
  /** Work on heavy requests that is currently running. */
  heavyWork: Promise<void> | null;
  readonly wake: () => void;
}

/**
 * Finishes started batches, then starts a batch with the remaining requests. A failing batch delays only the
 * people in that batch.
 * @returns whether there was work
 * @throws the first fault, after all other work has run
 */
async function runNext(parts: BatchLoopParts, state: LoopState, signal: AbortSignal): Promise<boolean> {
  const { records } = parts;
  const progress = await records.readProgress();
  const unfinished = await records.readUnfinished();
  parts.onPoll();
  if (progress.length === 0 && unfinished.length === 0) return false;
  // Read from the stored progress because another process may have started a heavy batch.
  const heavy = new Set(
    progress.filter((row) => isHeavy(row.closureKeys)).map(({ batchId }) => batchId.toString('hex')),
  );
  const batches = Map.groupBy(toBatches(progress, unfinished), ({ batchId }) => heavy.has(batchId.toString('hex')));
  startHeavyWork(parts, state, { started: batches.get(true) ?? [], unfinished, signal });
  return finishThenStart(parts, batches.get(false) ?? [], { begin: () => startNext(parts, state, signal), signal });
}

/** Erases heavy batches one at a time, concurrently with other batches. The next call retries failed batches. */
function startHeavyWork(
  parts: BatchLoopParts,
  state: LoopState,
  work: { started: readonly Batch[]; unfinished: readonly ErasureRequest[]; signal: AbortSignal },
): void {
  const { started, unfinished, signal } = work;
  if (state.heavyWork !== null) return;
  const unfinishedIds = new Set(unfinished.map(toId));
  for (const id of state.heavy) if (!unfinishedIds.has(id)) state.heavy.delete(id);
  if (state.heavy.size === 0 && started.length === 0) return;
  const ids = new Set(state.heavy);
  const startHeavy = async () => {
    const requests = state.heavyQueue.selectNext(
      (await findFree(parts.records)).filter((request) => ids.has(toId(request))),
    );
    if (requests.length === 0) return false;
    const batch = await state.heavyQueue.attempt(requests, () => beginBatch(parts, requests, signal));
    if (batch == null) return false;
    await finish(parts, batch, signal);
    return true;
  };
  state.heavyWork = finishThenStart(parts, started, { begin: startHeavy, signal })
    .catch(async (error: unknown) => {
      if (signal.aborted) return false;
      parts.onFault(error);
      parts.logger.warn({ error }, 'large erasure failed; retrying');
      await pause(RETRY_MAX_MS, signal);
      return true;
    })
    .then((hasWorked) => {
      state.heavyWork = null;
      // Requests that cannot start yet are retried at the next poll.
      if (hasWorked) state.wake();
    });
}

async function startNext(parts: BatchLoopParts, state: LoopState, signal: AbortSignal): Promise<boolean> {
  const { retryAtMs, heavy, queue } = state;
  const findNext = async () => {
    const isDue = (request: ErasureRequest) =>
      !heavy.has(toId(request)) && (retryAtMs.get(toId(request)) ?? 0) <= performance.now();
    return queue.selectNext((await findFree(parts.records)).filter(isDue));
  };
  if ((await findNext()).length === 0) return false;
  await pauseOrThrow(parts.windowMs, signal);
  const requests = await findNext();
  if (requests.length === 0) return true;
  let hasHeavy = false;
  const onHeavy = (found: readonly ErasureRequest[]) => {
    for (const request of found) heavy.add(toId(request));
    hasHeavy = true;
  };
  const batch = await queue.attempt(requests, () => beginBatch(parts, requests, signal, { onHeavy }));
  if (batch === undefined) return true;
  for (const request of requests) retryAtMs.set(toId(request), performance.now() + POLL_MS);
  for (const name of batch?.names ?? []) retryAtMs.delete(toId(name));
  // Started before the other requests are erased because an erasure takes time.
  if (hasHeavy) startHeavyWork(parts, state, { started: [], unfinished: await parts.records.readUnfinished(), signal });
  if (batch !== null) await finish(parts, batch, signal);
  return batch !== null;
}

/** Finds requests that are not in a batch and whose people are not in a batch. @throws StoreFault */
export async function findFree(records: BatchParts['records']): Promise<ErasureRequest[]> {
  const progress = await records.readProgress();
  const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
  const held = new Set(
    progress.flatMap(({ environmentId, closureKeys }) => closureKeys.map((key) => nameOf(environmentId, key))),
  );
  const started = new Set(progress.map(toId));
  return (await records.readUnfinished()).filter(
    ({ erasureId, environmentId, subjectKeys, memberKeys }) =>
      !started.has(toId({ erasureId })) &&
      ![...subjectKeys, ...memberKeys].some((key) => held.has(nameOf(environmentId, key))),
  );
}

/** Finishes batches, then calls `begin`. @returns whether there was work @throws the first fault */
async function finishThenStart(
  parts: BatchLoopParts,
  batches: readonly Batch[],
  { begin, signal }: { begin: () => Promise<boolean>; signal: AbortSignal },
): Promise<boolean> {
  const faults: unknown[] = [];
  for (const batch of batches) await finish(parts, batch, signal).catch((fault: unknown) => faults.push(fault));
  signal.throwIfAborted();
  const hasStarted = await begin();
  if (faults.length > 0) throw faults[0];
  return hasStarted || batches.length > 0;
}

async function finish(parts: BatchLoopParts, batch: Batch, signal: AbortSignal): Promise<void> {
  const end = parts.startBatch();
  const receipts = await finishBatch(parts, batch, signal);
  end(receipts);
  if (receipts.length > 0) parts.logger.info({ requests: receipts.length }, 'erasures completed');
}

type Alarm = ReturnType<typeof createAlarm>;

/** A pause that `ring` interrupts, even if `ring` is called before the pause starts. */
function createAlarm() {
  let controller = new AbortController();
  return {
    ring: () => controller.abort(),
    async wait(ms: number, signal: AbortSignal): Promise<void> {
      await pause(ms, AbortSignal.any([signal, controller.signal]));
      controller = new AbortController();
    },
  };
}

interface RequestQueueParts
  extends Pick<BatchLoopParts, 'batchRequestsMax' | 'isHealthy' | 'onFault' | 'deferred' | 'logger'> {
  /** Number of batches started by all queues of this process. The number increases only while all stores work. */
  readonly started: { batches: number };
}

interface FailureHistory {
  /** Size of the last failed batch that contained the request; `NEVER` if an outage caused the failure. */
  readonly failedSize: number;
  /** Number of times the request failed alone in a batch. Repeated failures count only if another batch started. */
  readonly blames: number;
  /** Number of batches started before the first failure, or before the last failure alone in a batch. */
  readonly startedBefore: number;
  readonly notBeforeMs: number;
}

const NEVER = Number.POSITIVE_INFINITY;
const NO_FAILURES: FailureHistory = { failedSize: NEVER, blames: 0, startedBefore: NEVER, notBeforeMs: 0 };
/** A request is deferred once `blames` reaches this number. */
const BLAMES_MAX = 2;
/** After this number of consecutive failed batches, requests are tried one at a time. */
const PROBE_FAILURES_MIN = 3;
const REQUEST_RETRY_MIN_MS = 10_000;
const REQUEST_RETRY_MAX_MS = 600_000;

/**
 * Selects the requests for the next batch and identifies requests that make batches fail. A failed batch is split in
 * half and retried, largest halves first. After three consecutive failures, random requests are tried one at a time. A
 * request is blamed if it fails alone and another batch has started since its last failure; otherwise, a store may be
 * the cause.
 */
export class RequestQueue {
  private readonly parts: RequestQueueParts;
  private readonly histories = new Map<string, FailureHistory>();
  /** Number of failed batches since the last success. */
  private failures = 0;
  private readonly failedAlone = new Set<string>();
  private wasLastClean = false;

  constructor(parts: RequestQueueParts) {
    this.parts = parts;
  }

  selectNext(free: readonly ErasureRequest[]): readonly ErasureRequest[] {
    const due = free.filter((request) => this.historyOf(request).notBeforeMs <= performance.now());
    const clean = due.filter((request) => this.historyOf(request).failedSize === NEVER);
    const failed = due.filter((request) => this.historyOf(request).failedSize !== NEVER);
    // Alternates between requests that have not failed and requests that have.
    const isClean = failed.length === 0 || (clean.length > 0 && !this.wasLastClean);
    const failedSize = failed.reduce((most, request) => Math.max(most, this.historyOf(request).failedSize), 0);
    const group = isClean ? clean : failed.filter((request) => this.historyOf(request).failedSize === failedSize);
    // Random because a fixed order could repeat requests that cannot be resolved.
    if (this.failures >= PROBE_FAILURES_MIN) return group.splice(Math.floor(Math.random() * group.length), 1);
    return group.slice(0, isClean ? this.parts.batchRequestsMax : Math.max(1, Math.floor(failedSize / 2)));
  }

  /**
   * Tries to start a batch with these requests.
   * @returns the result of `begin`; undefined if the requests caused a failure and other requests can be tried
   * immediately
   * @throws the fault if a store may be the cause
   */
  async attempt<B>(requests: readonly ErasureRequest[], begin: () => Promise<B | null>): Promise<B | null | undefined> {
    this.wasLastClean = this.historyOf(requests[0]!).failedSize === NEVER;
    try {
      const batch = await begin();
      for (const request of requests) {
        this.histories.delete(toId(request));
        this.parts.deferred.delete(toId(request));
      }
      // Without a batch, nothing was stored, so the stores may still be failing.
      if (batch !== null) this.recordSuccess();
      return batch;
    } catch (error) {
      if (!(await this.parts.isHealthy())) throw error;
      if (requests.length === 1) this.failAlone(requests[0]!, error);
      else this.failTogether(requests, error);
      this.parts.onFault(error);
      return undefined;
    }
  }

  private historyOf(request: ErasureRequest): FailureHistory {
    return this.histories.get(toId(request)) ?? NO_FAILURES;
  }

  private recordSuccess(): void {
    // Several requests failed alone, so an outage was the cause.
    if (this.failedAlone.size > 1)
      for (const [id, history] of this.histories)
        if (history.blames === 0) this.histories.delete(id);
        else if (history.blames < BLAMES_MAX) this.histories.set(id, { ...history, failedSize: NEVER });
    this.failures = 0;
    this.failedAlone.clear();
    this.parts.started.batches++;
  }

  private failTogether(requests: readonly ErasureRequest[], error: unknown): void {
    this.failures++;
    for (const request of requests) {
      const known = this.historyOf(request);
      const startedBefore = Math.min(known.startedBefore, this.parts.started.batches);
      this.histories.set(toId(request), { ...known, failedSize: requests.length, startedBefore });
    }
    const fields = { error, requests: requests.length };
    this.parts.logger.warn(fields, 'erasure batch failed to start; splitting it in half and retrying');
  }

  /** @throws the fault, unless the request is deferred */
  private failAlone(request: ErasureRequest, error: unknown): void {
    const { started, deferred, logger } = this.parts;
    const [id, known] = [toId(request), this.historyOf(request)];
    // Requests that are tried alone after consecutive failures may fail because of an outage.
    const isProof = started.batches > known.startedBefore && (known.blames > 0 || this.failures < PROBE_FAILURES_MIN);
    const isBlamed = isProof || error instanceof TooManyLinksError;
    const blames = known.blames + Number(isBlamed) + Number(known.blames === 0);
    const isDeferred = blames >= BLAMES_MAX;
    const retryMs = isDeferred ? Math.min(REQUEST_RETRY_MIN_MS * 2 ** (blames - BLAMES_MAX), REQUEST_RETRY_MAX_MS) : 0;
    const notBeforeMs = performance.now() + retryMs;
    this.histories.set(id, { failedSize: 1, blames, startedBefore: started.batches, notBeforeMs });
    if (known.blames < BLAMES_MAX) this.failures++;
    if (!isDeferred) {
      this.failedAlone.add(id);
      throw error;
    }
    deferred.add(id);
    if (isBlamed) logger.error({ error, erasureId: id, retryMs }, 'erasure deferred after repeated failures');
  }
}
