import { waitAtMost } from '@playline/stores';
import { type BatchHandler, type BatchPosition, RetryableFault, type StreamRecord } from '../ports.ts';
import { type CommitNote, NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { type LogMark, MarkTrail } from './log-mark.ts';
import { Fenced, hasBatch } from './log-partition.ts';
import { OwnedPartition, type OwnedPartitionOptions } from './owned-partition.ts';
import { type Ownership, OwnershipEnded } from './ownership.ts';
import type { PartitionWorker } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';

/** Large enough to pipeline store calls, and small enough to repeat after a fault. */
const BATCH_RECORDS_MAX = 1_000;
const BATCHES_WAITING_MAX = 4;

/**
 * What a partition does with fetched records.
 * - `starting`: ignores records until the handler has returned the start offset.
 * - `reading`: queues records and continues fetching.
 * - `full`: queues records, but fetches no more until batches have been handled.
 * - `paused`: ignores records after a permanent fault. The same work is retried at long intervals.
 * - `draining`: ignores records and finishes the current batch.
 * - `ended`: the partition was revoked, and the handler is notified.
 */
type Intake = 'starting' | 'reading' | 'full' | 'paused' | 'draining' | 'ended';

export interface RecordPartitionOptions extends OwnedPartitionOptions {
  handler: BatchHandler;
}

/** One partition of a record consumer. Handles batches in order, one at a time, and commits each completed batch. */
export class RecordPartition implements PartitionWorker {
  readonly #options: RecordPartitionOptions;
  readonly #owned: OwnedPartition;
  readonly #ownership: Ownership;
  #queue: StreamRecord[] = [];
  next: number;
  done: number;
  #committed: number;
  /** Batches that were handled but not committed, because their work or earlier work is unfinished. */
  #ended: Pick<BatchPosition, 'end' | 'mark'>[] = [];
  /** The batch for which the handler last reported finished work, until `unfinishedFrom` is called. */
  #workEnded: BatchPosition | null = null;
  #trail = new MarkTrail(null);
  #note: CommitNote = NO_NOTE;
  #working: Promise<void> | null = null;
  #intake: Intake = 'reading';

  constructor(options: RecordPartitionOptions) {
    this.#options = options;
    this.#owned = new OwnedPartition(options);
    this.#ownership = this.#owned.ownership;
    const { log, handler } = options;
    this.next = log.committed;
    this.done = log.committed;
    this.#committed = log.committed;
    try {
      this.#note = parseMetadata(log.metadata, log.committed);
    } catch (fault) {
      this.#stop(fault);
      return;
    }
    this.#trail = new MarkTrail(this.#note.mark);
    if (handler.onAssign === undefined) return;
    log.pause();
    this.#intake = 'starting';
    this.#working = this.#start();
  }

  get lastRead(): LogMark | null {
    return this.#trail.last;
  }

  get settled(): number {
    const isBusy = this.#working !== null || this.#queue.length > 0;
    return isBusy || this.#ownership.hasEnded || this.#intake === 'paused' ? this.done : this.next;
  }

  get healthy(): boolean {
    return this.#intake !== 'paused';
  }

  get blocker(): string | null {
    return this.#owned.blocker;
  }

  get #batchRecordsMax(): number {
    return this.#options.handler.batchRecordsMax ?? BATCH_RECORDS_MAX;
  }

  accept(records: readonly StreamRecord[], end: number, batches: readonly LogMark[] = []): void {
    if (this.#ownership.hasEnded || (this.#intake !== 'reading' && this.#intake !== 'full')) return;
    this.#trail.add(batches);
    for (const record of records) if (record.offset >= this.next) this.#queue.push(record);
    this.next = Math.max(this.next, end);
    if (this.#queue.length === 0) return;
    this.#working ??= this.#work();
    if (this.#intake === 'full' || this.#queue.length < this.#batchRecordsMax * BATCHES_WAITING_MAX) return;
    this.#intake = 'full';
    this.#options.log.pause();
  }

  async drain(budgetMs: number): Promise<void> {
    // A paused partition would use the whole time limit, and a partition that has not started has no work.
    const hasWork = this.#working !== null && ['reading', 'full', 'draining'].includes(this.#intake);
    if (this.#intake !== 'ended') this.#intake = 'draining';
    if (hasWork) await waitAtMost(budgetMs, this.#working!, () => {});
    this.end();
  }

  end(): void {
    if (this.#intake === 'ended') return;
    this.#intake = 'ended';
    this.#ownership.end();
    this.#queue = [];
    const { log, handler } = this.#options;
    // The last batch may still be running.
    void (this.#working ?? Promise.resolve()).then(() => handler.onRevoke?.(log.topic, log.partition));
  }

  /** Not awaited while joining the group, because an unavailable store must not delay heartbeats. */
  async #start(): Promise<void> {
    const { log } = this.#options;
    try {
      const start = await this.#retryWhilePaused(() => this.#fetchStart());
      this.next = start;
      this.done = start;
      // Reading starts before the commit, so the records do not directly follow the commit's mark.
      if (start < log.committed) this.#trail = new MarkTrail(null);
      // The partition may have been drained or ended during the call.
      if (this.#intake === 'starting') this.#intake = 'reading';
      log.seek(start);
      log.resume();
    } catch (fault) {
      if (!(fault instanceof OwnershipEnded)) this.#stop(fault);
    } finally {
      this.#working = null;
    }
  }

  /** Calls `onAssign` until it succeeds. Logs each reason once. */
  async #fetchStart(): Promise<number> {
    const { log, handler, metrics, logger } = this.#options;
    const { topic, partition, committed, start: logStart } = log;
    const { signal } = this.#ownership;
    const logState = { topic, partition, committed, logStart, hasBatch: (mark: LogMark) => hasBatch(log, mark) };
    const assigned = { ...logState, isOperatorDecision: this.#note.isDecision, signal };
    let logged = '';
    const fetchOnce = async () => {
      const start = await handler.onAssign!(assigned);
      if (start > committed)
        throw new Error(`${topic}/${partition}: start offset ${start} is after the committed offset ${committed}`);
      return start;
    };
    return await this.#ownership.retry(fetchOnce, (error) => {
      if (!(error instanceof RetryableFault)) return false;
      metrics.retry(topic, 'assign');
      if (error.message !== logged) logger?.warn({ error, topic, partition }, 'cannot get start offset; retrying');
      logged = error.message;
      return true;
    });
  }

  async #work(): Promise<void> {
    const { log, metrics } = this.#options;
    const isRunning = () => this.#intake !== 'draining' && !this.#ownership.hasEnded;
    try {
      while ((this.#queue.length > 0 || this.#workEnded !== null) && isRunning())
        if (this.#workEnded !== null) await this.#commit(this.#workEnded);
        else await this.#handleBatch();
    } catch (fault) {
      if (fault instanceof Fenced) metrics.block(log.topic, 'fenced');
      if (fault instanceof Fenced || fault instanceof OwnershipEnded) this.#ownership.end();
      else this.#stop(fault);
    } finally {
      this.#working = null;
    }
  }

  async #handleBatch(): Promise<void> {
    const { log, metrics } = this.#options;
    const records = this.#queue.splice(0, this.#batchRecordsMax);
    const end = this.#queue.length === 0 ? this.next : records.at(-1)!.offset + 1;
    const position: BatchPosition = {
      topic: log.topic,
      partition: log.partition,
      start: this.done,
      end,
      mark: this.#trail.before(end),
      committed: this.#committed,
      signal: this.#ownership.signal,
      workEnded: () => {
        this.#workEnded = position;
        const isReading = this.#intake === 'reading' || this.#intake === 'full';
        if (!this.#ownership.hasEnded && isReading) this.#working ??= this.#work();
      },
    };
    await this.#retryWhilePaused(() => this.#callHandler(records, position));
    this.#ended.push(position);
    await this.#commit(position);
    this.done = end;
    this.#trail.forget(end);
    metrics.record(log.topic, { kind: 'ok' }, records.length);
    this.#resume();
  }

  /**
   * Retries work until it succeeds, pausing the partition between attempts. Records that were ignored while paused are
   * fetched again.
   * @throws OwnershipEnded
   */
  async #retryWhilePaused<T>(work: () => Promise<T>): Promise<T> {
    // Fetching stays paused until the next work resumes it.
    const continueAs = this.#intake === 'starting' ? 'starting' : 'full';
    for (;;) {
      try {
        const result = await work();
        this.#ownership.check();
        if (this.#intake === 'paused') {
          this.#intake = continueAs;
          this.#owned.resume(this.done);
          this.#options.log.seek(this.next);
        }
        return result;
      } catch (fault) {
        if (fault instanceof OwnershipEnded || this.#intake === 'draining') throw fault;
        this.#ownership.check();
        this.#intake = 'paused';
        await this.#owned.pauseForRetry(this.done, fault);
        this.#ownership.check();
      }
    }
  }

  async #callHandler(records: readonly StreamRecord[], position: BatchPosition) {
    const { handler, metrics, logger } = this.#options;
    const { topic, partition, start } = position;
    await this.#ownership.retry(
      () => handler.onBatch(records, position),
      (error) => {
        if (!(error instanceof RetryableFault)) return false;
        metrics.retry(topic, 'batch');
        const attempt = { topic, partition, level: 'warn' as const, error, fields: { start } };
        retryLogOf(logger)?.report(attempt, 'cannot handle batch; retrying');
        return true;
      },
    );
    this.#ownership.check();
  }

  /** The committed offset never decreases, even if reading started before it. */
  async #commit(position: BatchPosition) {
    this.#workEnded = null;
    const unfinished = this.#options.handler.unfinishedFrom?.(position) ?? Number.POSITIVE_INFINITY;
    const last = this.#ended.findLast(({ end }) => end <= unfinished);
    if (last === undefined) return;
    this.#ended = this.#ended.filter(({ end }) => end > last.end);
    if (last.end <= this.#committed) return;
    this.#note = { ...this.#note, mark: last.mark, isDecision: false, triedTo: null };
    await this.#owned.commit(last.end, toMetadata(this.#note));
    this.#committed = last.end;
  }

  #resume() {
    if (this.#intake !== 'full' || this.#queue.length >= this.#batchRecordsMax) return;
    this.#intake = 'reading';
    this.#options.log.resume();
  }

  #stop(error: unknown) {
    if (this.#intake !== 'ended') this.#intake = 'paused';
    this.#owned.pause(this.done, error);
  }
}
