import { RetryableFault } from '../ports.ts';
import { type Block, nameTry, settleBlock } from './block.ts';
import type { BlockPartitionOptions } from './block-options.ts';
import { sendDeadLetters } from './dead-letters.ts';
import type { Hindrance } from './hindrance.ts';
import type { OwnedPartition } from './owned-partition.ts';
import type { Ownership } from './ownership.ts';
import { ALARM_HOURS, hoursLeft } from './retention.ts';
import { retryLogOf } from './retry-log.ts';

/** Step named in dead letters: the only one a block consumer has. */
const TRANSFORM_STEP = 'transform';

/** A healthy insert takes tens of milliseconds; after this long a block is worth a line, and long before a lag alarm. */
const WRITE_SLOW_MS = 5_000;

/** What a writer asks of the partition it writes for. */
export interface WrittenPartition {
  /** Asks the coordinator whether the block is still ours to write. */
  confirm(block: Block): Promise<void>;
  /** When an operator decided that this log was replaced and is read on; null for a log that never was. */
  logDecidedAtMs(): number | null;
}

/** Brings one block after the other to the store, as often as it takes, and tells how that goes. */
export class BlockWriter {
  readonly #options: BlockPartitionOptions;
  readonly #ownership: Ownership;
  readonly #hindrance: Hindrance;
  readonly #partition: WrittenPartition;
  readonly #watch = new WriteWatch();

  constructor(options: BlockPartitionOptions, { ownership, hindrance }: OwnedPartition, partition: WrittenPartition) {
    this.#options = options;
    this.#ownership = ownership;
    this.#hindrance = hindrance;
    this.#partition = partition;
  }

  /** Since when a block is being written, by `performance.now`; null while none is. */
  get sinceMs(): number | null {
    return this.#watch.sinceMs;
  }

  /**
   * Settles what the block is made of besides its records, which its intent must say.
   * @param carried what the block before has left
   * @throws OwnershipOver, and any fault of the builder that does not pass
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

  /** Acknowledged before the block is completed, so no record is passed over; after a crash they go out again. */
  async publishLetters(block: Block): Promise<void> {
    const { deadLetters, log, metrics, logger } = this.#options;
    if (block.letters.length === 0) return;
    const send = () => sendDeadLetters(deadLetters, block.letters, TRANSFORM_STEP);
    const trial = this.#hindrance.begin('dead letters are not acknowledged');
    await this.#ownership.retry(send, (error) => {
      metrics.retry(log.topic, 'dead-letter');
      trial.failed(error);
      return true;
    });
    trial.done();
    const { topic, partition } = log;
    const { record, label: reason } = block.letters[0]!;
    const told = { topic, partition, offset: record.offset, count: block.letters.length, reason };
    logger?.warn(told, 'records went to the dead letters');
    block.letters.length = 0;
  }

  /**
   * Writes the rows under a token of the block's name, until the store has them or the partition is lost.
   * @throws OwnershipOver, Fenced, and any fault of the store that does not pass
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
      // A process that slept may not own the partition any more: the coordinator is asked before rows go out.
      const isOld = performance.now() - block.confirmedAt > sessionTimeoutMs / 2;
      if (isOld) await this.#partition.confirm(block);
      this.#ownership.check();
      const name = nameTry(block, log, this.#partition.logDecidedAtMs());
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
    retryLogOf(logger)?.tell({ topic, partition, level: isLate ? 'error' : 'warn', error, fields }, message);
  }
}

/** Knows since when a block is being written, all its attempts together, and tells once when that is long. */
class WriteWatch {
  #sinceMs: number | null = null;

  /** The first attempt by `performance.now()`; null while nothing is being written. */
  get sinceMs(): number | null {
    return this.#sinceMs;
  }

  /** Runs `write` and calls `onSlow` at most once, while it is still running. */
  async run(write: () => Promise<void>, onSlow: () => void): Promise<void> {
    this.#sinceMs = performance.now();
    // A watch alone must not keep a process from ending.
    const timer = setTimeout(onSlow, WRITE_SLOW_MS).unref();
    try {
      await write();
    } finally {
      clearTimeout(timer);
      this.#sinceMs = null;
    }
  }
}
