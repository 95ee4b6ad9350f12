import { waitAtMost } from '@playline/stores';
import { type BatchHandler, type BatchPosition, RetryableFault, type StreamRecord } from '../ports.ts';
import { type CommitNote, NO_NOTE, parseMetadata, toMetadata } from './intent.ts';
import { type LogMark, MarkTrail } from './log-mark.ts';
import { Fenced, hasBatch, type LogPartition } from './log-partition.ts';
import {
  commitOffset,
  createOwnedPartition,
  type OwnedPartition,
  PartitionPause,
  pausePartition,
} from './owned-partition.ts';
import { Ownership, OwnershipOver, type Waits } from './ownership.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';

/**
 * Large enough to send a store's calls one after the other without waiting, small enough to be repeated after a fault.
 */
const BATCH_RECORDS_MAX = 1_000;
/** Fetching pauses when this many batches wait. */
const BATCHES_WAITING_MAX = 4;

/**
 * What a partition does with records that come.
 * - `starting`: the handler has not said yet where to start. None are taken.
 * - `taking`: they are taken, and fetched.
 * - `full`: those that were fetched are taken; none are fetched until batches have been handled.
 * - `standing`: a fault does not pass. None are taken; the same work is tried again, seldom.
 * - `draining`: none are taken; the batch under way is finished.
 * - `ended`: the partition is not ours any more, and the handler is told so.
 *
 * `taking` and `full` follow each other. A fault turns `starting`, `taking` and `full` into `standing`, which goes on as
 * `starting` or `full`. From any of these a drain leads to `draining`; `ended` is the last.
 */
type Intake = 'starting' | 'taking' | 'full' | 'standing' | 'draining' | 'ended';

export interface RecordPartitionOptions extends Reports {
  log: LogPartition;
  handler: BatchHandler;
  /** Tests only: shorter waits between attempts, and before a partition that stopped is tried again. */
  waits?: { attempt: Waits; pause: Waits };
}

/** One partition of a record consumer. It handles batches in order, one at a time, and commits each when it is done. */
export class RecordPartition implements PartitionWorker {
  readonly #options: RecordPartitionOptions;
  readonly #ownership: Ownership;
  readonly #owned: OwnedPartition;
  readonly #standstill: PartitionPause;
  #queue: StreamRecord[] = [];
  #next: number;
  #done: number;
  #committed: number;
  /**
   * Batches that have ended and are not committed, because their own work, or the work of an earlier one, still goes
   * on.
   */
  #ended: Pick<BatchPosition, 'end' | 'mark'>[] = [];
  /**
   * The batch whose handler last reported that work of earlier batches is done, until the handler is asked what is
   * left.
   */
  #told: BatchPosition | null = null;
  #trail = new MarkTrail(null);
  #note: CommitNote = NO_NOTE;
  #working: Promise<void> | null = null;
  #intake: Intake = 'taking';

  constructor(options: RecordPartitionOptions) {
    this.#options = options;
    const { log, handler, metrics, logger } = options;
    this.#ownership = new Ownership(options.waits?.attempt);
    this.#owned = createOwnedPartition({ log, metrics, logger, ownership: this.#ownership });
    this.#standstill = new PartitionPause(this.#owned, options.waits?.pause);
    this.#next = log.committed;
    this.#done = log.committed;
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

  get next(): number {
    return this.#next;
  }

  get done(): number {
    return this.#done;
  }

  get lastRead(): LogMark | null {
    return this.#trail.last;
  }

  get settled(): number {
    const isBusy = this.#working !== null || this.#queue.length > 0;
    return isBusy || this.#ownership.over || this.#intake === 'standing' ? this.#done : this.#next;
  }

  get healthy(): boolean {
    return this.#intake !== 'standing';
  }

  get blocker(): string | null {
    return this.#owned.blocker.sentence;
  }

  get #batchRecordsMax(): number {
    return this.#options.handler.batchRecordsMax ?? BATCH_RECORDS_MAX;
  }

  accept(records: readonly StreamRecord[], end: number, batches: readonly LogMark[] = []): void {
    if (this.#ownership.over || (this.#intake !== 'taking' && this.#intake !== 'full')) return;
    this.#trail.add(batches);
    for (const record of records) if (record.offset >= this.#next) this.#queue.push(record);
    this.#next = Math.max(this.#next, end);
    if (this.#queue.length === 0) return;
    this.#working ??= this.#work();
    if (this.#intake === 'full' || this.#queue.length < this.#batchRecordsMax * BATCHES_WAITING_MAX) return;
    this.#intake = 'full';
    this.#options.log.pause();
  }

  async drain(budgetMs: number): Promise<void> {
    // Do not wait for a standing partition, which would use the whole budget, or for one that has not begun.
    const hasWork = this.#working !== null && ['taking', 'full', 'draining'].includes(this.#intake);
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
    // The last batch may still be ending. The handler is called when nothing of it runs here any more.
    void (this.#working ?? Promise.resolve()).then(() => handler.onRevoke?.(log.topic, log.partition));
  }

  /**
   * Asked here, and not while the member joins the group: a store that is down must not keep the member from its
   * heartbeats.
   */
  async #start(): Promise<void> {
    const { log, handler, metrics, logger } = this.#options;
    const { topic, partition, committed, start: logStart } = log;
    const { isDecision } = this.#note;
    let told = '';
    try {
      const assigned = {
        topic,
        partition,
        committed,
        logStart,
        isOperatorDecision: isDecision,
        signal: this.#ownership.signal,
        hasBatch: (mark: LogMark) => hasBatch(log, mark),
      };
      const ask = async () => {
        const start = await handler.onAssign!(assigned);
        if (start > committed) throw new Error(`${topic}/${partition} cannot start at ${start}, behind ${committed}`);
        return start;
      };
      const askInTime = () =>
        this.#ownership.retry(ask, (error) => {
          if (!(error instanceof RetryableFault)) return false;
          metrics.retry(topic, 'assign');
          // Repeated for as long as it takes. The same reason is logged only once.
          if (error.message !== told) logger?.warn({ error, topic, partition }, 'where to start is asked again');
          told = error.message;
          return true;
        });
      const start = await this.#insist(askInTime);
      this.#next = start;
      this.#done = start;
      // Reading starts further back, so the mark of the commit comes after what is read first.
      if (start < committed) this.#trail = new MarkTrail(null);
      // It may have been told to drain, or to end, while the handler was asked.
      if (this.#intake === 'starting') this.#intake = 'taking';
      log.seek(start);
      log.resume();
    } catch (fault) {
      if (!(fault instanceof OwnershipOver)) this.#stop(fault);
    } finally {
      this.#working = null;
    }
  }

  async #work(): Promise<void> {
    const { log, metrics } = this.#options;
    try {
      while ((this.#queue.length > 0 || this.#told !== null) && this.#intake !== 'draining' && !this.#ownership.over)
        if (this.#told !== null) await this.#commit(this.#told);
        else await this.#takeBatch();
    } catch (fault) {
      if (fault instanceof Fenced) metrics.block(log.topic, 'fenced');
      if (fault instanceof Fenced || fault instanceof OwnershipOver) this.#ownership.end();
      else this.#stop(fault);
    } finally {
      this.#working = null;
    }
  }

  async #takeBatch(): Promise<void> {
    const { log, metrics } = this.#options;
    const records = this.#queue.splice(0, this.#batchRecordsMax);
    const end = this.#queue.length === 0 ? this.#next : records.at(-1)!.offset + 1;
    const position: BatchPosition = {
      topic: log.topic,
      partition: log.partition,
      start: this.#done,
      end,
      mark: this.#trail.before(end),
      committed: this.#committed,
      signal: this.#ownership.signal,
      workEnded: () => {
        this.#told = position;
        const isAtWork = this.#intake === 'taking' || this.#intake === 'full';
        if (!this.#ownership.over && isAtWork) this.#working ??= this.#work();
      },
    };
    await this.#insist(() => this.#handle(records, position));
    this.#ended.push(position);
    await this.#commit(position);
    this.#done = end;
    this.#trail.forget(end);
    metrics.record(log.topic, { kind: 'ok' }, records.length);
    this.#goOn();
  }

  /**
   * Repeats the work until it succeeds. After a fault the partition stands, and the same work is tried again now and
   * then. Records that came meanwhile were not taken, and are read again.
   * @throws OwnershipOver
   */
  async #insist<T>(work: () => Promise<T>): Promise<T> {
    // Fetching stays paused behind a standstill, until the work that comes next resumes it.
    const goesOnAs = this.#intake === 'starting' ? 'starting' : 'full';
    for (;;) {
      try {
        const result = await work();
        this.#ownership.check();
        if (this.#intake === 'standing') this.#standUp(goesOnAs);
        return result;
      } catch (fault) {
        if (fault instanceof OwnershipOver || this.#intake === 'draining') throw fault;
        this.#ownership.check();
        this.#intake = 'standing';
        await this.#standstill.wait(this.#done, fault);
        this.#ownership.check();
      }
    }
  }

  #standUp(goesOnAs: Intake) {
    this.#intake = goesOnAs;
    this.#standstill.end(this.#done);
    this.#options.log.seek(this.#next);
  }

  async #handle(records: readonly StreamRecord[], position: BatchPosition) {
    const { handler, metrics, logger, log } = this.#options;
    const { topic, partition, start } = position;
    const handle = () => handler.onBatch(records, position);
    await this.#ownership.retry(handle, (error) => {
      if (!(error instanceof RetryableFault)) return false;
      metrics.retry(log.topic, 'batch');
      retryLogOf(logger)?.report(
        { topic, partition, level: 'warn', error, fields: { start } },
        'a batch is tried again',
      );
      return true;
    });
    this.#ownership.check();
  }

  /** Commits never go back: after a rewind nothing is committed before the offset that is committed already. */
  async #commit(position: BatchPosition) {
    this.#told = null;
    const unfinished = this.#options.handler.unfinishedFrom?.(position) ?? Number.POSITIVE_INFINITY;
    const last = this.#ended.findLast(({ end }) => end <= unfinished);
    if (last === undefined) return;
    this.#ended = this.#ended.filter(({ end }) => end > last.end);
    if (last.end <= this.#committed) return;
    this.#note = { ...this.#note, mark: last.mark, isDecision: false, triedTo: null };
    await commitOffset(this.#owned, last.end, toMetadata(this.#note));
    this.#committed = last.end;
  }

  #goOn() {
    if (this.#intake !== 'full' || this.#queue.length >= this.#batchRecordsMax) return;
    this.#intake = 'taking';
    this.#options.log.resume();
  }

  #stop(error: unknown) {
    if (this.#intake !== 'ended') this.#intake = 'standing';
    pausePartition(this.#owned, this.#done, error);
  }
}
