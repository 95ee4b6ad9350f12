import { setTimeout as delay } from 'node:timers/promises';
import { NO_NOTE, parseRead, toMetadata } from './intent.ts';
import { isSameMark, isSuspect, type LogMark } from './log-mark.ts';
import { Fenced, type LogPartition, TopicGone } from './log-partition.ts';
import { type Finding, isDecisionFor, type OffsetDecision, toFindingText } from './offset-decision.ts';
import { createOwnedPartition, type OwnedPartition, pausePartition } from './owned-partition.ts';
import { Ownership } from './ownership.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';

/** After a decision of an operator the partition goes on within seconds, and the coordinator is hardly burdened. */
const DECISION_POLL_MS = 2_000;
const RETRY_WAIT_MS = 200;

/** A partition just looked at: what is committed, and what the log says of it. */
export interface ExaminedPartition {
  readonly log: LogPartition;
  readonly finding: Finding;
}

/**
 * What happens when retention took records that nobody had read. `passOver` logs and counts it and goes on: for records
 * that do not depend on each other and are lost either way. `stop` waits for an operator: for records whose order
 * matters.
 */
export type WhenExpired = 'passOver' | 'stop';

export interface GuardedPartitionOptions extends Reports {
  readonly groupId: string;
  readonly whenExpired: WhenExpired;
  /** A worker that loses its partition has this long to finish the current block. */
  readonly drainBudgetMs: number;
  openWorker(log: LogPartition): PartitionWorker;
  /** Reads commit and log again, for as long as the partition is ours. */
  examine(): Promise<ExaminedPartition>;
  /** Asks again which broker leads the partition: one that is no longer the leader does not answer. */
  refresh(): Promise<void>;
  /** The last decision of an operator about this partition. */
  readDecision(): Promise<OffsetDecision | null>;
}

/**
 * One assigned partition and its worker. The worker only continues in the log whose records it has committed. When the
 * partition is assigned, and while it is read, this class notices whether the log was shortened or exchanged. Then the
 * partition stands until an operator decides.
 */
export class GuardedPartition {
  readonly #options: GuardedPartitionOptions;
  readonly #over = new AbortController();
  #log: LogPartition;
  #worker: PartitionWorker;
  /** The log is being examined: nothing that was fetched before is taken. */
  #examining = false;
  /** Epoch of a leader that still has the last batch that was read. */
  #provenEpoch: number | null = null;
  /**
   * The last batch that was read, if retention has taken it. It cannot be compared with the log, and other batches are
   * not suspect because of that.
   */
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

  /** True while nothing that was fetched may be delivered. */
  get isClosed(): boolean {
    return this.#examining || this.#over.signal.aborted || !this.#worker.healthy;
  }

  /**
   * Checks batches before their records are taken. False when they may not belong to the log that was read: then they
   * are dropped, and fetched again once that is known.
   */
  acceptsBatches(batches: readonly LogMark[]): boolean {
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
  acceptsFetchFrom(from: number): boolean {
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

  /** The broker has nothing at the requested offset, or not the topic that was examined. */
  outOfRange(): void {
    void this.#suspend(async () => {
      const { log } = await this.#options.examine();
      // Retention took records. Those that were fetched before exist nowhere else.
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
      const standing = new PausedPartition({ log, fault, logger, metrics });
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
   * The log as its worker sees it. If the worker finds it gone, it is examined again, as when a fetch finds that. The
   * leader is looked up again before the worker repeats its question.
   */
  #watch(log: LogPartition): LogPartition {
    const batchAt = async (offset: number) => {
      try {
        return await log.batchAt(offset);
      } catch (fault) {
        if (fault instanceof TopicGone) this.outOfRange();
        else await this.#options.refresh().catch(() => {});
        throw fault;
      }
    };
    return { ...log, batchAt };
  }

  /** Keeps the partition from being read while `work` runs. */
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

  /** Repeats `work` while brokers do not answer: a partition that cannot be examined is not read. */
  async #insist(work: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) {
      try {
        return await work();
      } catch {
        await this.#options.refresh().catch(() => {});
        await delay(RETRY_WAIT_MS, undefined, { signal: this.#over.signal }).catch(() => {});
      }
    }
  }

  /** Is it only another leader, or another log? The last batch that was read shows it. */
  async #prove(last: LogMark, epoch: number): Promise<void> {
    const found = await this.#log.batchAt(last.base).catch((fault) => {
      if (fault instanceof TopicGone) return null;
      throw fault;
    });
    if (this.#over.signal.aborted) return;
    if (found === null || !isSameMark(found, last)) return await this.#reopen();
    this.#provenEpoch = epoch;
    this.#log.seek(this.#worker.next);
    this.#log.resume();
  }

  /**
   * Lets the worker finish all that it has taken, however long it takes. If it stands with a block, it tries that block
   * again.
   */
  async #finish(): Promise<void> {
    const isBusy = () => {
      const { healthy, settled, next, oldestUnwrittenMs = null } = this.#worker;
      return settled < next && (healthy || oldestUnwrittenMs !== null);
    };
    while (isBusy() && !this.#over.signal.aborted)
      await delay(RETRY_WAIT_MS, undefined, { signal: this.#over.signal }).catch(() => {});
  }

  /** Ends the worker as a rebalance would, and starts again at the committed offset, if the log still has it. */
  async #reopen(): Promise<void> {
    await this.#worker.drain(this.#options.drainBudgetMs);
    const examined = await this.#options.examine();
    if (this.#over.signal.aborted) return;
    this.#provenEpoch = null;
    this.#worker = this.#open(examined);
  }

  async #awaitDecision(standing: PausedPartition, { log, finding }: ExaminedPartition): Promise<void> {
    const { readDecision, logger } = this.#options;
    const { topic, partition, committed, metadata } = log;
    const read = parseRead(committed, metadata);
    // If it is unknown what was read, any record of the log may have a row.
    const rowsTo = finding.kind === 'foreign' ? Math.max(read.triedTo, finding.end) : read.triedTo;
    while (!standing.signal.aborted) {
      try {
        const decision = await readDecision();
        if (decision !== null && isDecisionFor(decision, read)) {
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
        if (fault instanceof TopicGone) return this.outOfRange();
        await this.#options.refresh().catch(() => {});
      }
      await delay(DECISION_POLL_MS, undefined, { signal: standing.signal }).catch(() => {});
    }
  }
}

/** The log is not the one whose offset was committed, or it lacks records that nobody has read. */
class LogReplaced extends Error {
  override readonly name = 'LogReplaced';
}

/** What happened, and the one command that decides, as a sentence for the operator who is alerted. */
function toRefusal(
  at: { topic: string; partition: number; committed: number; groupId: string },
  finding: Finding,
): LogReplaced {
  const { topic, partition, committed, groupId } = at;
  const command = `npm run offsets -- accept --group ${groupId} --topic ${topic} --partition ${partition}`;
  return new LogReplaced(
    `${topic}/${partition}: ${toFindingText(finding, committed)}. Nothing is read until somebody decides: ${command}`,
  );
}

/** A partition that is assigned here but not read, because going on would silently skip or double records. */
class PausedPartition implements PartitionWorker {
  readonly healthy = false;
  readonly lastRead = null;
  readonly #ownership = new Ownership();
  readonly #owned: OwnedPartition;
  readonly #committed: number;

  constructor({ log, fault, ...reports }: Reports & { log: LogPartition; fault: Error }) {
    this.#committed = log.committed;
    this.#owned = createOwnedPartition({ log, ownership: this.#ownership, ...reports });
    pausePartition(this.#owned, log.committed, fault);
  }

  get blocker(): string | null {
    return this.#owned.blocker.sentence;
  }

  get next(): number {
    return this.#committed;
  }

  get done(): number {
    return this.#committed;
  }

  get settled(): number {
    return this.#committed;
  }

  /** Aborted when the ownership ends. */
  get signal(): AbortSignal {
    return this.#ownership.signal;
  }

  accept(): void {}

  async drain(): Promise<void> {
    this.end();
  }

  end(): void {
    this.#ownership.end();
  }
}
