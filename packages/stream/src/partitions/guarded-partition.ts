import { setTimeout as delay } from 'node:timers/promises';
import { NO_NOTE, parseRead, toMetadata } from './intent.ts';
import type { Finding } from './log-finding.ts';
import { isSameMark, isSuspect, type LogMark } from './log-mark.ts';
import { Fenced, LogGone, type LogPartition } from './log-partition.ts';
import { isAnswer, type OffsetDecision } from './offset-decision.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';
import { StandingPartition, toRefusal } from './standing-partition.ts';

/** An operator who has decided sees the partition go on within seconds, and a coordinator is asked next to nothing. */
const DECISION_LOOK_MS = 2_000;
const ASK_AGAIN_MS = 200;

/** A partition just looked at: what is committed, and what the log says of it. */
export interface ExaminedPartition {
  readonly log: LogPartition;
  readonly finding: Finding;
}

/**
 * What becomes of records that retention took before anybody read them: `passOver` says so, counts them and goes on,
 * for records that stand alone and are gone either way; `stop` asks an operator, for records whose order decides.
 */
export type WhenExpired = 'passOver' | 'stop';

export interface GuardedPartitionOptions extends Reports {
  readonly groupId: string;
  readonly whenExpired: WhenExpired;
  /** A worker that is taken off has this long to finish the block under way. */
  readonly drainBudgetMs: number;
  openWorker(log: LogPartition): PartitionWorker;
  /** Reads commit and log again, for as long as the partition is ours. */
  examine(): Promise<ExaminedPartition>;
  /** Asks anew who leads what: a leader that has moved does not answer. */
  refresh(): Promise<void>;
  /** What an operator has decided about this partition last. */
  readDecision(): Promise<OffsetDecision | null>;
}

/**
 * One assigned partition with its worker, which only ever works on the log whose records it has committed. A log that
 * was shortened or exchanged is seen here, when the partition is assigned and while it is read; it stands then until an
 * operator decides.
 */
export class GuardedPartition {
  readonly #options: GuardedPartitionOptions;
  readonly #over = new AbortController();
  #log: LogPartition;
  #worker: PartitionWorker;
  /** The log is being looked at: nothing that was fetched before is taken. */
  #examining = false;
  /** Epoch of a leader behind whom the batch read last was found again. */
  #provenEpoch: number | null = null;
  /** The batch read last, where the log has nothing to compare it with: retention took it. It casts no doubt on others. */
  #unprovable: LogMark | null = null;

  constructor(first: ExaminedPartition, options: GuardedPartitionOptions) {
    this.#options = options;
    this.#log = first.log;
    this.#worker = this.#open(first);
  }

  get log(): LogPartition {
    return this.#log;
  }

  get worker(): PartitionWorker {
    return this.#worker;
  }

  /** Nothing fetched may be handed over now. */
  get isClosed(): boolean {
    return this.#examining || this.#over.signal.aborted || !this.#worker.healthy;
  }

  /**
   * Looks at batches before their records are taken. False when they may not follow what was read: they are dropped, and
   * fetched again once that is known.
   */
  follows(batches: readonly LogMark[]): boolean {
    const [first] = batches;
    if (first === undefined || first.epoch === this.#provenEpoch) return true;
    const { lastRead } = this.#worker;
    if (lastRead === null || lastRead === this.#unprovable || !isSuspect(lastRead, first)) return true;
    void this.#suspend(() => this.#prove(lastRead, first.epoch));
    return false;
  }

  /**
   * Whether records that were fetched from an offset may be taken. One case is special: the fetch began behind the
   * offset that is read next. If it began at the first offset that the log has, the records before it are gone, and no
   * wait brings them back: those that came are taken. Any other is the answer to a question from before the partition
   * was examined. It is asked again, or records that the log still has would be passed over.
   */
  takesFrom(from: number): boolean {
    const { next } = this.#worker;
    if (from > next && from > this.#log.start) {
      this.#log.seek(next);
      return false;
    }
    if (from > next) this.#passOver(from);
    return true;
  }

  #passOver(to: number): void {
    const { logger, metrics } = this.#options;
    const { topic, partition } = this.#log;
    const from = this.#worker.next;
    metrics.skipped(topic, to - from);
    logger?.error({ topic, partition, from, to }, 'the log does not have these offsets any more');
    this.#worker.accept([], to);
  }

  /** The broker has nothing at the offset that was asked for, or not the topic that was examined. */
  outOfRange(): void {
    void this.#suspend(async () => {
      const { log } = await this.#options.examine();
      // Retention: what was fetched before is nowhere else any more.
      if (log.start > this.#worker.next) await this.#finish();
      await this.#reopen();
    });
  }

  async drain(budgetMs: number): Promise<void> {
    await this.#worker.drain(budgetMs);
    this.end();
  }

  end(): void {
    this.#over.abort();
    this.#worker.end();
  }

  #open({ log, finding }: ExaminedPartition): PartitionWorker {
    const { openWorker, groupId, whenExpired, logger, metrics } = this.#options;
    this.#log = log;
    const { topic, partition, committed } = log;
    const isRefused =
      finding.kind === 'shortened' ||
      finding.kind === 'exchanged' ||
      finding.kind === 'foreign' ||
      (finding.kind === 'expired' && whenExpired === 'stop');
    if (isRefused) {
      const fault = toRefusal({ topic, partition, committed, groupId }, finding);
      const standing = new StandingPartition({ log, fault, logger, metrics });
      void this.#awaitDecision(standing, { log, finding });
      return standing;
    }
    log.resume();
    log.seek(committed);
    const worker = openWorker(this.#watch(log));
    this.#unprovable = finding.kind === 'intact' ? null : worker.lastRead;
    return worker;
  }

  /**
   * The log as its worker sees it: when the worker finds it gone, it is examined as when a fetch does; and whoever leads it
   * is asked for before the worker asks again.
   */
  #watch(log: LogPartition): LogPartition {
    const batchAt = async (offset: number) => {
      try {
        return await log.batchAt(offset);
      } catch (fault) {
        if (fault instanceof LogGone) this.outOfRange();
        else await this.#options.refresh().catch(() => {});
        throw fault;
      }
    };
    return { ...log, batchAt };
  }

  /** Keeps the partition from being read while `work` finds out. */
  async #suspend(work: () => Promise<void>): Promise<void> {
    this.#log.pause();
    if (this.#examining) return;
    this.#examining = true;
    try {
      await this.#insist(work);
    } finally {
      this.#examining = false;
    }
  }

  /** Brokers that do not answer are asked again: a partition nobody can look at is not read. */
  async #insist(work: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) {
      try {
        return await work();
      } catch {
        await this.#options.refresh().catch(() => {});
        await delay(ASK_AGAIN_MS, undefined, { signal: this.#over.signal }).catch(() => {});
      }
    }
  }

  /** Another leader, or another log? The batch that was read last tells. */
  async #prove(last: LogMark, epoch: number): Promise<void> {
    const found = await this.#log.batchAt(last.base).catch((fault) => {
      if (fault instanceof LogGone) return null;
      throw fault;
    });
    if (this.#over.signal.aborted) return;
    if (found === null || !isSameMark(found, last)) return await this.#reopen();
    this.#provenEpoch = epoch;
    this.#log.seek(this.#worker.next);
    this.#log.resume();
  }

  /** Lets the worker do all that it has taken, for as long as that takes; one that stands with a block tries it again. */
  async #finish(): Promise<void> {
    const isBusy = () => {
      const { healthy, settled, next, oldestUnwrittenMs = null } = this.#worker;
      return settled < next && (healthy || oldestUnwrittenMs !== null);
    };
    while (isBusy() && !this.#over.signal.aborted)
      await delay(ASK_AGAIN_MS, undefined, { signal: this.#over.signal }).catch(() => {});
  }

  /** Ends the worker as a rebalance would, and begins again at what is committed, if the log still has that. */
  async #reopen(): Promise<void> {
    await this.#worker.drain(this.#options.drainBudgetMs);
    const examined = await this.#options.examine();
    if (this.#over.signal.aborted) return;
    this.#provenEpoch = null;
    this.#worker = this.#open(examined);
  }

  async #awaitDecision(standing: StandingPartition, { log, finding }: ExaminedPartition): Promise<void> {
    const { readDecision, logger } = this.#options;
    const { topic, partition, committed, metadata } = log;
    const read = parseRead(committed, metadata);
    // Where it is not known what was read, any record of the log may have its row.
    const rowsTo = finding.kind === 'foreign' ? Math.max(read.triedTo, finding.end) : read.triedTo;
    while (!standing.signal.aborted) {
      try {
        const decision = await readDecision();
        if (decision !== null && isAnswer(decision, read)) {
          const { from, decidedAtMs } = decision;
          const mark = from > log.start ? await log.batchAt(from - 1) : null;
          if (standing.signal.aborted) return;
          const triedTo = rowsTo > from ? rowsTo : null;
          await log.commit(from, toMetadata({ ...NO_NOTE, mark, decidedAtMs, isDecision: true, triedTo }));
          logger?.warn({ topic, partition, committed, from }, 'reading goes on as an operator has decided');
          standing.end();
          return await this.#suspend(() => this.#reopen());
        }
      } catch (fault) {
        if (fault instanceof Fenced) return;
        if (fault instanceof LogGone) return this.outOfRange();
        await this.#options.refresh().catch(() => {});
      }
      await delay(DECISION_LOOK_MS, undefined, { signal: standing.signal }).catch(() => {});
    }
  }
}
