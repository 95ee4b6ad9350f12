import { waitAtMost } from '@playline/stores';
import { type BlockLimits, type BlockSink, type Producer, RetryableFault, type StreamRecord } from '../ports.ts';
import { addToBlock, type Block, confirmIntent, createBlock, settleBlock, startAttempt, toIntent } from './block.ts';
import { sendDeadLetters } from './dead-letters.ts';
import { type CommitNote, type Intent, type IntentPolicy, KEEP_INTENTS, NO_NOTE } from './intent.ts';
import { type LogMark, MarkTrail } from './log-mark.ts';
import { Fenced } from './log-partition.ts';
import { OwnedPartition, type OwnedPartitionOptions } from './owned-partition.ts';
import { type Ownership, OwnershipEnded } from './ownership.ts';
import type { PartitionWorker } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';
import { ALARM_HOURS, hoursLeft, type RetryStep } from './stream-metrics.ts';

/** One block is written while the next one is filled. Fetching while more blocks wait would only use memory. */
const BLOCKS_WAITING_MAX = 2;
const TRANSFORM_STEP = 'transform';
const WRITE_SLOW_MS = 5_000;

/**
 * What a partition does with fetched records.
 * - `reading`: adds records to blocks and continues fetching.
 * - `full`: adds records, but fetches no more until a block is written.
 * - `paused`: ignores records after a permanent fault. The current block is retried at long intervals, then `reading`.
 * - `draining`: ignores records, finishes a block with a committed intent, leaves the rest to the next owner. Final.
 */
type Intake = 'reading' | 'full' | 'paused' | 'draining';

export interface BlockPartitionOptions extends OwnedPartitionOptions {
  sink: BlockSink;
  limits: BlockLimits;
  deadLetters: Producer;
  /** After half of this time, an intent is recommitted before rows are sent. */
  sessionTimeoutMs: number;
  /** Defaults to `KEEP_INTENTS`. Tests disable intents to show that they detect duplicate rows. */
  intents?: IntentPolicy;
  /** Returns the retention of a topic, or null if it is unknown. */
  retentionMsOf?: (topic: string) => number | null;
}

/**
 * One partition of a block consumer. (1) Commits a block's end as an intent, (2) writes the block with a token derived
 * from its start and end, and (3) commits the end. An owner that takes over after (1) writes the same rows with the
 * same token. Only the current owner can do (1).
 */
export class BlockPartition implements PartitionWorker {
  readonly #options: BlockPartitionOptions;
  readonly #owned: OwnedPartition;
  readonly #ownership: Ownership;
  readonly #intents: IntentPolicy;
  readonly #queue: Block[] = [];
  #filling: Block | null = null;
  next: number;
  done: number;
  #trail = new MarkTrail(null);
  #note: CommitNote = NO_NOTE;
  /** Timer that closes the block being filled; `due` if it expired while another block was being written. */
  #age: NodeJS.Timeout | 'due' | null = null;
  #working: Promise<void> | null = null;
  writingSinceMs: number | null = null;
  #intake: Intake = 'reading';

  constructor(options: BlockPartitionOptions) {
    this.#options = options;
    this.#intents = options.intents ?? KEEP_INTENTS;
    this.#owned = new OwnedPartition(options);
    this.#ownership = this.#owned.ownership;
    const { committed, metadata } = options.log;
    this.next = committed;
    this.done = committed;
    try {
      this.#note = this.#intents.parse(metadata, committed);
      this.#trail = new MarkTrail(this.#note.mark);
      if (this.#note.intent !== null) this.#filling = this.#openBlock(this.#note.intent);
    } catch (fault) {
      this.#intake = 'paused';
      this.#owned.pause(committed, fault);
    }
  }

  get lastRead(): LogMark | null {
    return this.#trail.last;
  }

  get settled(): number {
    const isBusy = this.#working !== null || this.#queue.length > 0 || this.#filling !== null;
    return isBusy || this.#ownership.hasEnded || this.#intake === 'paused' ? this.done : this.next;
  }

  get oldestUnwrittenMs(): number | null {
    return (this.#queue[0] ?? this.#filling)?.firstTimestampMs ?? null;
  }

  get healthy(): boolean {
    return this.#intake !== 'paused';
  }

  get blocker(): string | null {
    return this.#owned.blocker;
  }

  accept(records: readonly StreamRecord[], end: number, batches: readonly LogMark[] = []): void {
    if (this.#ownership.hasEnded || this.#intake === 'draining' || this.#intake === 'paused') return;
    this.#trail.add(batches);
    try {
      this.#add(records, end);
    } catch (fault) {
      void this.#retryReading(fault);
    }
  }

  #add(records: readonly StreamRecord[], end: number) {
    for (const record of records) {
      if (record.offset < this.next) continue;
      // The end in the intent is in a gap in the log.
      if (this.#filling?.recoverTo != null && record.offset >= this.#filling.recoverTo)
        this.#close(this.#filling.recoverTo);
      this.#filling ??= this.#openBlock(null);
      addToBlock(this.#filling, record);
      this.next = record.offset + 1;
      if (this.#isFull(this.#filling)) this.#close(this.next);
    }
    this.next = Math.max(this.next, end);
    const recoverTo = this.#filling?.recoverTo;
    if (recoverTo != null && this.next >= recoverTo) this.#close(recoverTo);
  }

  /** Rereads records that could not be added, after a delay or after the current write. */
  async #retryReading(fault: unknown): Promise<void> {
    this.#intake = 'paused';
    await this.#owned.pauseForRetry(this.done, fault);
    if (this.#working === null && !this.#ownership.hasEnded) this.#resume();
  }

  async drain(budgetMs: number): Promise<void> {
    // A paused partition would use the whole time limit.
    const hasWork = this.#working !== null && this.#intake !== 'paused';
    this.#intake = 'draining';
    this.#clearAge();
    if (hasWork) await waitAtMost(budgetMs, this.#working!, () => {});
    this.end();
  }

  end(): void {
    this.#ownership.end();
    this.#clearAge();
    // A write may still be reading its buffers, so they are released after the write.
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
      throw new Error(
        `A block has transform version ${transformVersion}, which this release cannot build. ` +
          'Run the release that committed its intent until the block is written.',
      );
    const builder = sink.openBlock(log.topic, log.partition);
    // A block with a committed intent ends only at the end in the intent, without a timer or limits.
    if (intent === null) this.#age = setTimeout(() => this.#onAge(), limits.ageMaxMs);
    const start = intent === null ? (this.#queue.at(-1)?.end ?? this.done) : this.done;
    return createBlock({ start, builder, transformVersion, intent, triedTo: this.#note.triedTo });
  }

  #isFull({ recoverTo, builder, deadLetters, deadLetterBytes }: Block): boolean {
    if (recoverTo !== null) return this.next >= recoverTo;
    const { rowsMax, bytesMax } = this.#options.limits;
    return builder.rows + deadLetters.length >= rowsMax || builder.bytes + deadLetterBytes >= bytesMax;
  }

  /** While a block is being written, one larger next block is cheaper than two small blocks. */
  #onAge() {
    if (this.#working === null) this.#close(this.next);
    else this.#age = 'due';
  }

  #clearAge() {
    if (this.#age !== 'due' && this.#age !== null) clearTimeout(this.#age);
    this.#age = null;
  }

  #close(end: number) {
    const block = this.#filling;
    this.#clearAge();
    if (block === null) return;
    this.#filling = null;
    block.end = end;
    block.mark = this.#trail.before(end);
    this.#trail.forget(end);
    this.#queue.push(block);
    this.#working ??= this.#work();
    if (this.#queue.length < BLOCKS_WAITING_MAX || this.#intake !== 'reading') return;
    this.#intake = 'full';
    this.#options.log.pause();
  }

  async #work(): Promise<void> {
    do {
      try {
        await this.#writeQueue();
      } catch (fault) {
        if (fault instanceof Fenced) this.#options.metrics.block(this.#options.log.topic, 'fenced');
        const isLost = fault instanceof Fenced || fault instanceof OwnershipEnded;
        if (isLost || this.#intake === 'draining') this.end();
        else {
          this.#intake = 'paused';
          await this.#owned.pauseForRetry(this.done, fault);
        }
      }
      // A block may have been closed while `#working` was still set.
    } while (this.#queue.length > 0 && this.#intake !== 'draining' && !this.#ownership.hasEnded);
    this.#working = null;
    if (this.#ownership.hasEnded) this.#releaseAll();
  }

  async #writeQueue(): Promise<void> {
    while (this.#queue.length > 0) {
      const block = this.#queue[0]!;
      // Only a block with a committed intent must be finished. Other blocks are left to the next owner.
      if (this.#intake === 'draining' && block.intentAtMs === null) break;
      await this.#settle(block, this.#note.carried);
      if (block.intentAtMs === null) await this.#commitIntent(block);
      await this.#publishDeadLetters(block);
      await this.#write(block);
      await this.#complete(block);
      if (this.#age === 'due' && this.#queue.length === 0) this.#close(this.next);
    }
  }

  /** Resumes reading after the partition was paused or full. Records ignored while paused are fetched again. */
  #resume() {
    const { log } = this.#options;
    if (this.#intake !== 'paused' && this.#intake !== 'full') return;
    if (this.#intake === 'paused') {
      this.#owned.resume(this.done);
      log.seek(this.next);
    }
    this.#intake = 'reading';
    log.resume();
  }

  /** Must precede step 1, because the intent contains the builder's trace. */
  async #settle(block: Block, carried: string | null): Promise<void> {
    await this.#retry('settle', block, () => settleBlock(block, carried));
  }

  /** Step 1: commits the intent. If the commit is rejected, the block is not written. */
  async #commitIntent(block: Block): Promise<void> {
    const intentAtMs = block.intentAtMs ?? Date.now();
    await this.#commit(block.start, { ...this.#note, intent: toIntent(block, intentAtMs) });
    confirmIntent(block, intentAtMs);
  }

  /** Publishes dead letters before the block is completed, so that none is lost. A crash may duplicate them. */
  async #publishDeadLetters(block: Block): Promise<void> {
    const { deadLetters: producer, log, logger } = this.#options;
    const count = block.deadLetters.length;
    if (count === 0) return;
    await this.#owned.retryUntilDone('dead-letter', 'dead letters not acknowledged', () =>
      sendDeadLetters(producer, block.deadLetters, TRANSFORM_STEP),
    );
    const { record, label: reason } = block.deadLetters[0]!;
    const fields = { topic: log.topic, partition: log.partition, offset: record.offset, count, reason };
    logger?.warn(fields, 'records published as dead letters');
    block.deadLetters.length = 0;
  }

  /** Step 2: writes the block. @throws OwnershipEnded, Fenced, or a permanent fault of the store */
  async #write(block: Block): Promise<void> {
    const { log, logger, sessionTimeoutMs } = this.#options;
    const { topic, partition } = log;
    const { rows } = block.builder;
    if (rows === 0) return;
    this.writingSinceMs = performance.now();
    const onSlow = () => logger?.warn({ topic, partition, start: block.start, rows }, 'block write is slow');
    const timer = setTimeout(onSlow, WRITE_SLOW_MS).unref();
    try {
      await this.#retry('write', block, async () => {
        // A suspended process may have lost the partition.
        if (performance.now() - block.confirmedAt > sessionTimeoutMs / 2) await this.#commitIntent(block);
        this.#ownership.check();
        await block.builder.write(startAttempt(block, log, this.#note.decidedAtMs), this.#ownership.signal);
      });
    } finally {
      clearTimeout(timer);
      this.writingSinceMs = null;
    }
  }

  /** Step 3: commits the end together with the intent of the next block, if that block is already closed. */
  async #complete(block: Block) {
    const { log, metrics } = this.#options;
    const next = this.#intake === 'draining' ? undefined : this.#queue[1];
    const carried = block.trace?.carries ?? null;
    if (next !== undefined) await this.#settle(next, carried);
    const intentAtMs = Date.now();
    const intent = next === undefined ? null : toIntent(next, intentAtMs);
    const triedTo = (this.#note.triedTo ?? 0) > block.end ? this.#note.triedTo : null;
    const note = { ...this.#note, intent, mark: block.mark, isDecision: false, triedTo, carried };
    await this.#commit(block.end, note);
    if (next !== undefined) confirmIntent(next, intentAtMs);
    this.#note = note;
    this.#queue.shift();
    this.done = block.end;
    metrics.block(log.topic, block.recoverTo === null ? 'written' : 'recovered');
    for (const { kind, reason, count } of block.outcomes.values()) metrics.record(log.topic, { kind, reason }, count);
    block.builder.release();
    this.#resume();
  }

  #commit(offset: number, note: CommitNote): Promise<void> {
    return this.#owned.commit(offset, this.#intents.toText(note));
  }

  async #retry(step: RetryStep, block: Block, work: () => Promise<void>): Promise<void> {
    const { log, metrics } = this.#options;
    await this.#ownership.retry(work, (error) => {
      if (!(error instanceof RetryableFault)) return false;
      metrics.retry(log.topic, step);
      this.#reportRetry(block, error);
      return true;
    });
  }

  #reportRetry({ start, firstTimestampMs }: Block, error: unknown) {
    const { log, logger, retentionMsOf } = this.#options;
    const { topic, partition } = log;
    const retentionMs = retentionMsOf?.(topic) ?? null;
    const remainingHours =
      retentionMs === null || firstTimestampMs === null ? null : hoursLeft(firstTimestampMs, retentionMs);
    const isLate = remainingHours !== null && remainingHours < ALARM_HOURS;
    const message = isLate ? 'retention will soon delete unwritten records' : 'cannot write block; retrying';
    const fields = { start, hoursLeft: remainingHours };
    retryLogOf(logger)?.report({ topic, partition, level: isLate ? 'error' : 'warn', error, fields }, message);
  }
}
