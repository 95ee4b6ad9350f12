import { type BlockLimits, type BlockSink, type Producer, RetryableFault } from '../ports.ts';
import { type Block, nameTry, settleBlock } from './block.ts';
import { sendDeadLetters } from './dead-letters.ts';
import type { IntentPolicy } from './intent.ts';
import type { LogPartition } from './log-partition.ts';
import type { Hindrance, OwnedPartition } from './owned-partition.ts';
import type { Ownership, Waits } from './ownership.ts';
import type { Reports } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';
import { ALARM_HOURS, hoursLeft } from './stream-metrics.ts';

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
  waits?: { attempt: Waits; standstill: Waits };
}

/** The step that dead letters name. A block consumer has only this one. */
const TRANSFORM_STEP = 'transform';

/**
 * A healthy insert takes tens of milliseconds. A block that takes this long is logged, well before anybody is alerted
 * of the lag.
 */
const WRITE_SLOW_MS = 5_000;

/** What a writer needs of the partition it writes for. */
export interface WrittenPartition {
  /** Asks the coordinator whether the block is still ours to write. */
  confirm(block: Block): Promise<void>;
  /** When an operator decided to read on in a log that replaced another one; null if this log never was replaced. */
  logDecidedAtMs(): number | null;
}

/** Writes one block after the other to the store, as often as it takes, and reports how that goes. */
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
