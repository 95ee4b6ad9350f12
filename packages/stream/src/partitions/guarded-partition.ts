import { setTimeout as delay } from 'node:timers/promises';
import { NO_NOTE, parseRead, toMetadata } from './intent.ts';
import { isSameMark, isSuspect, type LogMark } from './log-mark.ts';
import { Fenced, type LogPartition, TopicDeleted } from './log-partition.ts';
import { type Finding, isDecisionFor, type OffsetDecision, toFindingText } from './offset-decision.ts';
import { OwnedPartition } from './owned-partition.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';

const DECISION_POLL_MS = 2_000;
const RETRY_WAIT_MS = 200;

export interface ExaminedPartition {
  readonly log: LogPartition;
  readonly finding: Finding;
}

/**
 * What happens if retention deleted unread records. `skip`, for independent records, logs and counts the deleted
 * offsets and continues. `stop`, for ordered records, pauses the partition until an operator decides.
 */
export type WhenExpired = 'skip' | 'stop';

export interface GuardedPartitionOptions extends Reports {
  readonly groupId: string;
  readonly whenExpired: WhenExpired;
  readonly drainBudgetMs: number;
  openWorker(log: LogPartition): PartitionWorker;
  examine(): Promise<ExaminedPartition>;
  /** Finds the partition's current leader, because a former leader does not respond. */
  refresh(): Promise<void>;
  readDecision(): Promise<OffsetDecision | null>;
}

/**
 * An assigned partition and its worker. Detects, on assignment and while reading, that the log was truncated or
 * replaced, and then pauses the partition until an operator decides.
 */
export class GuardedPartition {
  readonly #options: GuardedPartitionOptions;
  readonly #ended = new AbortController();
  log: LogPartition;
  worker: PartitionWorker;
  /** True while the log is being examined and records that were fetched earlier are ignored. */
  #examining = false;
  /** Epoch of a leader that is known to have the last batch that was read. */
  #provenEpoch: number | null = null;
  /** The last batch that was read, if retention deleted it. Its absence then proves nothing. */
  #unprovable: LogMark | null = null;

  constructor(first: ExaminedPartition, options: GuardedPartitionOptions) {
    this.#options = options;
    this.log = first.log;
    this.worker = this.#open(first);
  }

  get isClosed(): boolean {
    return this.#examining || this.#ended.signal.aborted || !this.worker.healthy;
  }

  /** Returns false if the batches may belong to a different log. They are fetched again after a check. */
  acceptsBatches(batches: readonly LogMark[]): boolean {
    const [first] = batches;
    if (first === undefined || first.epoch === this.#provenEpoch) return true;
    const { lastRead } = this.worker;
    if (lastRead === null || lastRead === this.#unprovable || !isSuspect(lastRead, first)) return true;
    void this.#suspend(() => this.#prove(lastRead, first.epoch));
    return false;
  }

  /**
   * Returns true if records fetched from an offset may be delivered. A fetch that starts after the next offset is
   * outdated and is repeated, unless it starts at the start of the log, which means that retention deleted the records
   * in between.
   */
  acceptsFetchFrom(from: number): boolean {
    const { next } = this.worker;
    if (from <= next) return true;
    const { topic, partition, start } = this.log;
    if (from > start) {
      this.log.seek(next);
      return false;
    }
    this.#options.metrics.skipped(topic, from - next);
    this.#options.logger?.error({ topic, partition, from: next, to: from }, 'skipped offsets that retention deleted');
    this.worker.accept([], from);
    return true;
  }

  /** Called if the broker has no record at the requested offset, or no longer has the examined topic. */
  outOfRange(): void {
    void this.#suspend(async () => {
      const { log } = await this.#options.examine();
      // Retention deleted records, so the records that were already fetched exist only in this process.
      if (log.start > this.worker.next) await this.#finish();
      await this.#reopen();
    });
  }

  async drain(budgetMs: number): Promise<void> {
    await this.worker.drain(budgetMs);
    this.end();
  }

  end(): void {
    this.#ended.abort();
    this.worker.end();
  }

  #open({ log, finding }: ExaminedPartition): PartitionWorker {
    const { openWorker, groupId, whenExpired, logger, metrics } = this.#options;
    this.log = log;
    const { kind } = finding;
    const isReplaced = kind === 'shortened' || kind === 'exchanged' || kind === 'foreign';
    if (isReplaced || (kind === 'expired' && whenExpired === 'stop')) {
      const { topic, partition, committed } = log;
      const command = `npm run offsets -- accept --group ${groupId} --topic ${topic} --partition ${partition}`;
      const cause = `${topic}/${partition}: ${toFindingText(finding, committed)}`;
      const fault = new LogReplaced(`${cause}. The partition is paused until you decide. Run: ${command}`);
      const paused = new PausedPartition({ log, fault, logger, metrics });
      void this.#awaitDecision(paused, { log, finding });
      return paused;
    }
    log.resume();
    log.seek(log.committed);
    const worker = openWorker(this.#watch(log));
    this.#unprovable = kind === 'intact' ? null : worker.lastRead;
    return worker;
  }

  /** Wraps the log for the worker. A missing topic triggers an examination; any other fault refreshes the leader. */
  #watch(log: LogPartition): LogPartition {
    const batchAt = async (offset: number) => {
      try {
        return await log.batchAt(offset);
      } catch (fault) {
        if (fault instanceof TopicDeleted) this.outOfRange();
        else await this.#options.refresh().catch(() => {});
        throw fault;
      }
    };
    return { ...log, batchAt };
  }

  async #suspend(work: () => Promise<void>): Promise<void> {
    this.log.pause();
    if (this.#examining) return;
    this.#examining = true;
    while (!this.#ended.signal.aborted) {
      try {
        await work();
        break;
      } catch {
        await this.#options.refresh().catch(() => {});
        await this.#wait();
      }
    }
    this.#examining = false;
  }

  async #wait(): Promise<void> {
    await delay(RETRY_WAIT_MS, undefined, { signal: this.#ended.signal }).catch(() => {});
  }

  /** Rereads the last batch to distinguish a new leader from a different log. */
  async #prove(last: LogMark, epoch: number): Promise<void> {
    const found = await this.log.batchAt(last.base).catch((fault) => {
      if (fault instanceof TopicDeleted) return null;
      throw fault;
    });
    if (this.#ended.signal.aborted) return;
    if (found === null || !isSameMark(found, last)) return await this.#reopen();
    this.#provenEpoch = epoch;
    this.log.seek(this.worker.next);
    this.log.resume();
  }

  /** Waits without a time limit until the worker has finished all its records, even if it is paused with a block. */
  async #finish(): Promise<void> {
    const isBusy = () => {
      const { healthy, settled, next, oldestUnwrittenMs = null } = this.worker;
      return settled < next && (healthy || oldestUnwrittenMs !== null);
    };
    while (isBusy() && !this.#ended.signal.aborted) await this.#wait();
  }

  /** Ends the worker as in a rebalance, and restarts at the committed offset if the log still contains it. */
  async #reopen(): Promise<void> {
    await this.worker.drain(this.#options.drainBudgetMs);
    const examined = await this.#options.examine();
    if (this.#ended.signal.aborted) return;
    this.#provenEpoch = null;
    this.worker = this.#open(examined);
  }

  async #awaitDecision(paused: PausedPartition, { log, finding }: ExaminedPartition): Promise<void> {
    const { readDecision, logger } = this.#options;
    const { topic, partition, committed, metadata } = log;
    const read = parseRead(committed, metadata);
    // If it is unknown how far the group has read, every record in the log may have a row.
    const rowsTo = finding.kind === 'foreign' ? Math.max(read.triedTo, finding.end) : read.triedTo;
    while (!paused.signal.aborted) {
      try {
        const decision = await readDecision();
        if (decision !== null && isDecisionFor(decision, read)) {
          const { from, decidedAtMs } = decision;
          const mark = from > log.start ? await log.batchAt(from - 1) : null;
          if (paused.signal.aborted) return;
          const triedTo = rowsTo > from ? rowsTo : null;
          await log.commit(from, toMetadata({ ...NO_NOTE, mark, decidedAtMs, isDecision: true, triedTo }));
          logger?.warn({ topic, partition, committed, from }, 'offset decision applied');
          paused.end();
          return await this.#suspend(() => this.#reopen());
        }
      } catch (fault) {
        if (fault instanceof Fenced) return;
        if (fault instanceof TopicDeleted) return this.outOfRange();
        await this.#options.refresh().catch(() => {});
      }
      await delay(DECISION_POLL_MS, undefined, { signal: paused.signal }).catch(() => {});
    }
  }
}

/** The log was replaced after the commit, or retention deleted unread records. */
class LogReplaced extends Error {
  override readonly name = 'LogReplaced';
}

/** A partition that is assigned but not read, because reading it would skip or duplicate records. */
class PausedPartition implements PartitionWorker {
  readonly healthy = false;
  readonly lastRead = null;
  readonly next: number;
  readonly done: number;
  readonly settled: number;
  readonly #owned: OwnedPartition;

  constructor({ log, fault, ...reports }: Reports & { log: LogPartition; fault: Error }) {
    const { committed } = log;
    this.next = committed;
    this.done = committed;
    this.settled = committed;
    this.#owned = new OwnedPartition({ log, ...reports });
    this.#owned.pause(committed, fault);
  }

  get blocker(): string | null {
    return this.#owned.blocker;
  }

  get signal(): AbortSignal {
    return this.#owned.ownership.signal;
  }

  accept(): void {}

  async drain(): Promise<void> {
    this.end();
  }

  end(): void {
    this.#owned.ownership.end();
  }
}
