import { waitAtMost } from '@playline/stores';
import { type BlockLimits, type BlockSink, type Producer, RetryableFault, type StreamRecord } from '../ports.ts';
import { addToBlock, type Block, createBlock, markNamed, settleBlock, startAttempt, toIntent } from './block.ts';
import { sendDeadLetters } from './dead-letters.ts';
import { type CommitNote, type Intent, type IntentPolicy, KEEP_INTENTS, NO_NOTE } from './intent.ts';
import { type LogMark, MarkTrail } from './log-mark.ts';
import { Fenced, type LogPartition } from './log-partition.ts';
import {
  type Blocker,
  commitOffset,
  createOwnedPartition,
  type OwnedPartition,
  PartitionPause,
  pausePartition,
} from './owned-partition.ts';
import { Ownership, OwnershipOver, type Waits } from './ownership.ts';
import type { PartitionWorker, Reports } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';
import { ALARM_HOURS, hoursLeft } from './stream-metrics.ts';

/** One block is written while the next is filled; with more waiting, fetching only costs memory. */
const BLOCKS_WAITING_MAX = 2;

/**
 * What a partition does with records that come.
 * - `taking`: they are taken, and fetched.
 * - `full`: fetched records are taken, but no more are fetched until a block is written.
 * - `standing`: after a fault that waiting does not end. None are taken; the named block is tried again, rarely.
 * - `draining`: none are taken. A named block is finished; the others are left to the next owner.
 *
 * `taking` and `full` follow each other; a fault turns either into `standing`, which goes on as `taking`; `draining` is
 * the last.
 */
type Intake = 'taking' | 'full' | 'standing' | 'draining';

/** Timer that cuts the block being filled by its age; `due` when it ended while another block was being written. */
type Age = NodeJS.Timeout | 'due' | null;

/**
 * One partition of a block consumer: records become blocks, blocks become rows once each.
 *
 * The order that makes it once: (1) the block's end is committed as an intent beside its start, (2) the block is
 * written under a token made of start and end, (3) its end is committed. An owner that takes over after (1) reads
 * exactly the same records and writes them under the same token, and the store drops one of the two. A write needs (1),
 * and (1) is refused to all but the present owner.
 */
export class BlockPartition implements PartitionWorker {
  readonly #options: BlockPartitionOptions;
  readonly #ownership: Ownership;
  readonly #owned: OwnedPartition;
  readonly #standstill: PartitionPause;
  readonly #writer: BlockWriter;
  /** Cut blocks in the order of the log; the first is being written. */
  readonly #queue: Block[] = [];
  #filling: Block | null = null;
  #next: number;
  #done: number;
  #trail = new MarkTrail(null);
  /** The note committed with `#done`. */
  #note: CommitNote = NO_NOTE;
  readonly #intents: IntentPolicy;
  #age: Age = null;
  #working: Promise<void> | null = null;
  #intake: Intake = 'taking';

  constructor(options: BlockPartitionOptions) {
    this.#options = options;
    this.#intents = options.intents ?? KEEP_INTENTS;
    const { log, metrics, logger } = options;
    this.#ownership = new Ownership(options.waits?.attempt);
    this.#owned = createOwnedPartition({ log, metrics, logger, ownership: this.#ownership });
    this.#standstill = new PartitionPause(this.#owned, options.waits?.pause);
    this.#writer = new BlockWriter(options, this.#owned, {
      confirm: (block) => this.#name(block),
      logDecidedAtMs: () => this.#note.decidedAtMs,
    });
    const { committed } = log;
    this.#next = committed;
    this.#done = committed;
    try {
      this.#note = this.#intents.parse(log.metadata, committed);
      this.#trail = new MarkTrail(this.#note.mark);
      if (this.#note.intent !== null) this.#filling = this.#openBlock(this.#note.intent);
    } catch (fault) {
      this.#intake = 'standing';
      pausePartition(this.#owned, this.#done, fault);
    }
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
    const isBusy = this.#working !== null || this.#queue.length > 0 || this.#filling !== null;
    return isBusy || this.#ownership.over || this.#intake === 'standing' ? this.#done : this.#next;
  }

  get writingSinceMs(): number | null {
    return this.#writer.sinceMs;
  }

  get oldestUnwrittenMs(): number | null {
    return (this.#queue[0] ?? this.#filling)?.firstTimestampMs ?? null;
  }

  get healthy(): boolean {
    return this.#intake !== 'standing';
  }

  get blocker(): string | null {
    return this.#owned.blocker.sentence;
  }

  accept(records: readonly StreamRecord[], end: number, batches: readonly LogMark[] = []): void {
    if (this.#ownership.over || this.#intake === 'draining' || this.#intake === 'standing') return;
    this.#trail.add(batches);
    try {
      this.#take(records, end);
    } catch (fault) {
      void this.#standAside(fault);
    }
  }

  #take(records: readonly StreamRecord[], end: number) {
    for (const record of records) {
      if (record.offset < this.#next) continue;
      // the named end lies in a gap of the log
      if (this.#filling?.recoverTo != null && record.offset >= this.#filling.recoverTo)
        this.#cut(this.#filling.recoverTo);
      this.#filling ??= this.#openBlock(null);
      addToBlock(this.#filling, record);
      this.#next = record.offset + 1;
      if (this.#isFull(this.#filling)) this.#cut(this.#next);
    }
    this.#next = Math.max(this.#next, end);
    const recoverTo = this.#filling?.recoverTo;
    if (recoverTo != null && this.#next >= recoverTo) this.#cut(recoverTo);
  }

  async drain(budgetMs: number): Promise<void> {
    const stands = this.#intake === 'standing';
    this.#intake = 'draining';
    this.#disarm();
    // Do not wait for a standing partition: it would use the whole budget.
    if (this.#working !== null && !stands) await waitAtMost(budgetMs, this.#working, () => {});
    this.end();
  }

  end(): void {
    this.#ownership.end();
    this.#disarm();
    // A write may still read its buffers, so they are released after it.
    if (this.#working === null) this.#releaseAll();
  }

  #releaseAll() {
    for (const block of this.#queue.splice(0)) block.builder.release();
    this.#filling?.builder.release();
    this.#filling = null;
  }

  #openBlock(intent: Intent | null): Block {
    const { sink, log, limits } = this.#options;
    const transformVersion = intent?.transformVersion ?? sink.transformVersion;
    if (transformVersion !== sink.transformVersion)
      throw new Error(`a block was named with transform version ${transformVersion}, which this release cannot build`);
    const builder = sink.openBlock(log.topic, log.partition);
    // A block that was named before is cut only at its named end, without timer or limits.
    if (intent === null) this.#age = setTimeout(() => this.#grewOld(), limits.ageMaxMs);
    const start = intent === null ? (this.#queue.at(-1)?.end ?? this.#done) : this.#done;
    return createBlock({ start, builder, transformVersion, intent, triedTo: this.#note.triedTo });
  }

  #isFull(block: Block): boolean {
    if (block.recoverTo !== null) return this.#next >= block.recoverTo;
    const { rowsMax, bytesMax } = this.#options.limits;
    const { builder, deadLetters: letters, deadLetterBytes: letterBytes } = block;
    return builder.rows + letters.length >= rowsMax || builder.bytes + letterBytes >= bytesMax;
  }

  /** While a block is being written, a larger one behind it is cheaper than two small ones. */
  #grewOld() {
    if (this.#working === null) this.#cut(this.#next);
    else this.#age = 'due';
  }

  #disarm() {
    if (this.#age !== 'due' && this.#age !== null) clearTimeout(this.#age);
    this.#age = null;
  }

  #cut(end: number) {
    const block = this.#filling;
    this.#disarm();
    if (block === null) return;
    this.#filling = null;
    block.end = end;
    block.mark = this.#trail.before(end);
    this.#trail.forget(end);
    this.#queue.push(block);
    this.#working ??= this.#work();
    if (this.#queue.length < BLOCKS_WAITING_MAX || this.#intake !== 'taking') return;
    this.#intake = 'full';
    this.#options.log.pause();
  }

  /** Writes until no block waits or the ownership ends. After a final fault the partition stands for a while. */
  async #work(): Promise<void> {
    do {
      try {
        await this.#writeQueue();
      } catch (fault) {
        if (fault instanceof Fenced) this.#options.metrics.block(this.#options.log.topic, 'fenced');
        const isLost = fault instanceof Fenced || fault instanceof OwnershipOver;
        if (isLost || this.#intake === 'draining') this.end();
        else await this.#standStill(fault);
      }
      // A block may have been cut meanwhile, while `#working` was still set.
    } while (this.#queue.length > 0 && this.#intake !== 'draining' && !this.#ownership.over);
    this.#working = null;
    if (this.#ownership.over) this.#releaseAll();
  }

  async #writeQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      const block = this.#queue[0]!;
      // Only a named block must be finished; others are left to the next owner.
      if (this.#intake === 'draining' && block.namedAtMs === null) break;
      await this.#writer.settle(block, this.#note.carried);
      if (block.namedAtMs === null) await this.#name(block);
      await this.#writer.publishDeadLetters(block);
      await this.#writer.write(block);
      await this.#complete(block);
      if (this.#age === 'due' && this.#queue.length === 0) this.#cut(this.#next);
    }
  }

  async #standStill(fault: unknown): Promise<void> {
    this.#intake = 'standing';
    await this.#standstill.wait(this.#done, fault);
  }

  /** Records that could not be taken are read again: after a wait, or when the current block is written. */
  async #standAside(fault: unknown): Promise<void> {
    await this.#standStill(fault);
    if (this.#working === null && !this.#ownership.over) this.#goOn();
  }

  /** Takes records again after it stood or was full. Records that came while it stood are fetched again. */
  #goOn() {
    const { log } = this.#options;
    if (this.#intake !== 'standing' && this.#intake !== 'full') return;
    if (this.#intake === 'standing') {
      this.#standstill.end(this.#done);
      log.seek(this.#next);
    }
    this.#intake = 'taking';
    log.resume();
  }

  /** Step 1: commits the intent. If that is refused, the block is never written. */
  async #name(block: Block) {
    const namedAtMs = block.namedAtMs ?? Date.now();
    await this.#commit(block.start, { ...this.#note, intent: toIntent(block, namedAtMs) });
    markNamed(block, namedAtMs);
  }

  /** Step 3: commits the end and, if the next block is cut already, its intent. */
  async #complete(block: Block) {
    const { log, metrics } = this.#options;
    const following = this.#intake === 'draining' ? undefined : this.#queue[1];
    const carried = block.trace?.carries ?? null;
    if (following !== undefined) await this.#writer.settle(following, carried);
    const namedAtMs = Date.now();
    const intent = following === undefined ? null : toIntent(following, namedAtMs);
    const triedTo = (this.#note.triedTo ?? 0) > block.end ? this.#note.triedTo : null;
    const note = { ...this.#note, intent, mark: block.mark, isDecision: false, triedTo, carried };
    await this.#commit(block.end, note);
    if (following !== undefined) markNamed(following, namedAtMs);
    this.#note = note;
    this.#queue.shift();
    this.#done = block.end;
    metrics.block(log.topic, block.recoverTo === null ? 'written' : 'recovered');
    for (const { kind, reason, count } of block.outcomes.values()) metrics.record(log.topic, { kind, reason }, count);
    block.builder.release();
    this.#goOn();
  }

  #commit(offset: number, note: CommitNote): Promise<void> {
    return commitOffset(this.#owned, offset, this.#intents.toText(note));
  }
}

/** What one partition of a block consumer works with. */
export interface BlockPartitionOptions extends Reports {
  log: LogPartition;
  sink: BlockSink;
  limits: BlockLimits;
  deadLetters: Producer;
  /** An intent is trusted for half of it, before the coordinator is asked again. */
  sessionTimeoutMs: number;
  /** Default: `KEEP_INTENTS`. Tests also use a policy without intents, to show that they detect doubled rows. */
  intents?: IntentPolicy;
  /** How long the log keeps records of a topic; null while that is not known. */
  retentionMsOf?: (topic: string) => number | null;
  /** Tests only: shorter waits between attempts, and before a partition that stopped is tried again. */
  waits?: { attempt: Waits; pause: Waits };
}

/** The step that dead letters name. A block consumer has only this one. */
const TRANSFORM_STEP = 'transform';

/**
 * A healthy insert takes tens of milliseconds. A block that takes this long is logged, well before anybody is alerted
 * of the lag.
 */
const WRITE_SLOW_MS = 5_000;

/** What a writer needs of the partition it writes for. */
interface WrittenPartition {
  /** Asks the coordinator whether the block is still ours to write. */
  confirm(block: Block): Promise<void>;
  /** When an operator decided to read on in a log that replaced another one; null if this log never was replaced. */
  logDecidedAtMs(): number | null;
}

/** Writes one block after the other to the store, as often as it takes, and reports how that goes. */
class BlockWriter {
  readonly #options: BlockPartitionOptions;
  readonly #ownership: Ownership;
  readonly #hindrance: Blocker;
  readonly #partition: WrittenPartition;
  readonly #watch = new WriteWatch();

  constructor(
    options: BlockPartitionOptions,
    { ownership, blocker: hindrance }: OwnedPartition,
    partition: WrittenPartition,
  ) {
    this.#options = options;
    this.#ownership = ownership;
    this.#hindrance = hindrance;
    this.#partition = partition;
  }

  /** Start of the present write by `performance.now`; null while there is none. */
  get sinceMs(): number | null {
    return this.#watch.sinceMs;
  }

  /**
   * Settles what the block's rows depend on besides its records. Must come before its intent, which contains the
   * result.
   * @param carried what the previous block left
   * @throws OwnershipOver, and any fault of the builder that waiting does not end
   */
  async settle(block: Block, carried: string | null): Promise<void> {
    await this.#ownership.retry(
      () => settleBlock(block, carried),
      (error) => {
        if (!(error instanceof RetryableFault)) return false;
        this.#options.metrics.retry(this.#options.log.topic, 'settle');
        this.#tell(block, error);
        return true;
      },
    );
  }

  /**
   * Acknowledged before the block is completed, so that no record is lost. After a crash they may be published twice.
   */
  async publishDeadLetters(block: Block): Promise<void> {
    const { deadLetters, log, metrics, logger } = this.#options;
    if (block.deadLetters.length === 0) return;
    const send = () => sendDeadLetters(deadLetters, block.deadLetters, TRANSFORM_STEP);
    const trial = this.#hindrance.beginStep('dead letters are not acknowledged');
    await this.#ownership.retry(send, (error) => {
      metrics.retry(log.topic, 'dead-letter');
      trial.failed(error);
      return true;
    });
    trial.done();
    const { topic, partition } = log;
    const { record, label: reason } = block.deadLetters[0]!;
    const told = { topic, partition, offset: record.offset, count: block.deadLetters.length, reason };
    logger?.warn(told, 'records went to the dead letters');
    block.deadLetters.length = 0;
  }

  /**
   * Writes the rows under a token made of the block's name, until the store has them or the partition is lost.
   * @throws OwnershipOver, Fenced, and any fault of the store that waiting does not end
   */
  async write(block: Block): Promise<void> {
    const { topic, partition } = this.#options.log;
    const at = { topic, partition, start: block.start, rows: block.builder.rows };
    if (at.rows === 0) return;
    await this.#watch.run(
      () => this.#writeUntilStored(block),
      () => this.#options.logger?.warn(at, 'a block takes long to write'),
    );
  }

  async #writeUntilStored(block: Block) {
    const { log, metrics, sessionTimeoutMs } = this.#options;
    const write = async () => {
      // A process that was suspended may have lost the partition, so the coordinator is asked before rows are sent.
      const isOld = performance.now() - block.confirmedAt > sessionTimeoutMs / 2;
      if (isOld) await this.#partition.confirm(block);
      this.#ownership.check();
      const name = startAttempt(block, log, this.#partition.logDecidedAtMs());
      await block.builder.write(name, this.#ownership.signal);
    };
    await this.#ownership.retry(write, (error) => {
      if (!(error instanceof RetryableFault)) return false;
      metrics.retry(log.topic, 'write');
      this.#tell(block, error);
      return true;
    });
  }

  #tell({ start, firstTimestampMs }: Block, error: unknown) {
    const { log, logger, retentionMsOf } = this.#options;
    const { topic, partition } = log;
    const retentionMs = retentionMsOf?.(topic) ?? null;
    const left = retentionMs === null || firstTimestampMs === null ? null : hoursLeft(firstTimestampMs, retentionMs);
    const isLate = left !== null && left < ALARM_HOURS;
    const message = isLate ? 'retention will take records that are not written' : 'a block is tried again';
    const fields = { start, hoursLeft: left };
    retryLogOf(logger)?.report({ topic, partition, level: isLate ? 'error' : 'warn', error, fields }, message);
  }
}

/** Knows since when a block is being written, all attempts together, and reports once when that takes long. */
class WriteWatch {
  #sinceMs: number | null = null;

  /** The first attempt by `performance.now()`; null while nothing is being written. */
  get sinceMs(): number | null {
    return this.#sinceMs;
  }

  /** Runs `write` and calls `onSlow` at most once, while it is still running. */
  async run(write: () => Promise<void>, onSlow: () => void): Promise<void> {
    this.#sinceMs = performance.now();
    // This timer alone must not keep a process from exiting.
    const timer = setTimeout(onSlow, WRITE_SLOW_MS).unref();
    try {
      await write();
    } finally {
      clearTimeout(timer);
      this.#sinceMs = null;
    }
  }
}
