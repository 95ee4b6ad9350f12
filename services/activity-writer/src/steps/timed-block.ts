import type { LoggedVersion } from '@playline/chain';
import {
  type BlockBuilder,
  type BlockName,
  type BlockOrigin,
  type BlockTrace,
  createNameNotes,
  type DeadLetter,
  type NameNotes,
  type Outcome,
  type StreamRecord,
} from '@playline/stream';
import { assignTimes, type BlockTimes, type LoggedRecord } from './assign-times.ts';
import type { ReadRow } from './read-row.ts';

/** A row with its time, and the record it came from. */
export interface TimedRow<R> {
  readonly row: R;
  readonly record: StreamRecord;
}

/** What a block has to write. */
export interface TimedRows<R> {
  readonly rows: readonly R[];
  /** Epoch microseconds: times of the block, also in earlier attempts at it, are above `after` and at most `end`. */
  readonly after: number;
  readonly end: number;
  /** An earlier owner named the block, and may have written rows that are not in it now. */
  readonly isRecovered: boolean;
  readonly block: BlockName;
  /** One for each block, kept from attempt to attempt. */
  readonly notes: NameNotes;
  readonly signal: AbortSignal;
}

/** Rows that must not be written, and why. */
export interface Refusal<R> {
  readonly timed: TimedRow<R>;
  readonly reason: string;
}

export interface TimedBlockOptions<R> {
  readonly readRow: ReadRow<R>;
  /** Whether a record is a tick, which has a time and no row. */
  readonly isTick: (record: StreamRecord) => boolean;
  /** The published watermark of a partition, epoch microseconds; 0 for none. @throws RetryableFault */
  readonly readWatermark: (partition: number) => Promise<number>;
  /** Offsets of those of the rows that are stored. @throws RetryableFault */
  readonly storedOffsets: (rows: readonly R[]) => Promise<ReadonlySet<number>>;
  /** Finds the rows that must not be written. @throws RetryableFault */
  readonly refuse: (rows: readonly TimedRow<R>[]) => Promise<readonly Refusal<R>[]>;
  /** Resolves when they are acknowledged. @throws RetryableFault */
  readonly publishLetters: (letters: readonly DeadLetter[]) => Promise<void>;
  /** Called for every record that is read, except ticks. */
  readonly onTaken: (partition: number) => void;
  /** @throws RetryableFault to be called again */
  readonly write: (rows: TimedRows<R>) => Promise<void>;
}

interface Held<R> {
  readonly record: StreamRecord;
  /** Index among all records of the block, each of which gets a time. */
  readonly index: number;
  /** Null when its schema was not known yet. */
  readonly row: R | null;
}

/**
 * A block whose rows get their times when it is cut. Every record gets a time, even one that becomes no row, so that
 * times do not depend on which records become rows.
 */
export class TimedBlock<R extends LoggedVersion> implements BlockBuilder {
  readonly #options: TimedBlockOptions<R>;
  readonly #partition: number;
  readonly #notes = createNameNotes();
  readonly #places: LoggedRecord[] = [];
  readonly #held: Held<R>[] = [];
  #ticks = 0;
  #bytes = 0;
  #times: BlockTimes | null = null;
  /** An earlier owner named the block, and may have published a watermark that covers it. */
  #isRecovered = false;
  /** The rows to write, once they are known. */
  #kept: readonly R[] | null = null;

  constructor(options: TimedBlockOptions<R>, partition: number) {
    this.#options = options;
    this.#partition = partition;
  }

  /**
   * The number of rows. Ticks count, since a block of ticks alone must be written to move the watermark. So does a
   * block that an earlier owner named and that has lost all of its records: what that owner began must be finished.
   */
  get rows(): number {
    return this.#held.length + this.#ticks + (this.#isRecovered ? 1 : 0);
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(record: StreamRecord): Outcome {
    const { readRow, isTick, onTaken } = this.#options;
    const { offset, timestampMs } = record;
    this.#places.push({ offset, timestampMs });
    if (isTick(record)) {
      this.#ticks++;
      return { kind: 'drop', reason: 'tick' };
    }
    onTaken(this.#partition);
    const reading = readRow.now(record);
    if (reading.kind === 'unreadable') return { kind: 'deadLetter', reason: reading.reason };
    const row = reading.kind === 'row' ? reading.row : null;
    this.#held.push({ record, row, index: this.#places.length - 1 });
    this.#bytes += record.value?.length ?? 0;
    return { kind: 'ok' };
  }

  async settle(origin: BlockOrigin): Promise<BlockTrace> {
    this.#isRecovered = origin.basis !== null;
    // A named block does not use the published watermark, which may be its own.
    const watermark = origin.basis === null ? await this.#options.readWatermark(this.#partition) : 0;
    this.#times = assignTimes(this.#places, origin, watermark);
    return this.#times.trace;
  }

  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const times = this.#times;
    if (times === null) throw new Error('a block is settled before it is written');
    this.#kept ??= await this.#sift(times);
    const { after, end } = times;
    await this.#options.write({
      rows: this.#kept,
      after,
      end,
      isRecovered: this.#isRecovered,
      block,
      notes: this.#notes,
      signal,
    });
  }

  /** Reads the records that could not be read on arrival, and makes dead letters of what must not be written. */
  async #sift({ times }: BlockTimes): Promise<R[]> {
    const { readRow, publishLetters } = this.#options;
    const letters: DeadLetter[] = [];
    const timed: TimedRow<R>[] = [];
    for (const { record, row: known, index } of this.#held) {
      const reading = known === null ? await readRow.later(record) : { kind: 'row' as const, row: known };
      if (reading.kind === 'unreadable') letters.push({ record, reason: reading.reason });
      else timed.push({ record, row: { ...reading.row, updatedAt: times[index]! } });
    }
    const refusals = [...(await this.#options.refuse(timed)), ...(await this.#findTooLate(timed))];
    const refused = new Map(refusals.map(({ timed: each, reason }) => [each, reason]));
    for (const [{ record }, reason] of refused) letters.push({ record, reason });
    if (letters.length > 0) await publishLetters(letters);
    return timed.filter((each) => !refused.has(each)).map(({ row }) => row);
  }

  /**
   * Rows below the published watermark that the earlier owner did not write. Its registry did not know the schema of a
   * record that can be read now, for example. Readers have passed the watermark, so nothing may be added below it any
   * more.
   */
  async #findTooLate(timed: readonly TimedRow<R>[]): Promise<Refusal<R>[]> {
    if (!this.#isRecovered) return [];
    const watermark = await this.#options.readWatermark(this.#partition);
    const passed = timed.filter(({ row }) => row.updatedAt <= watermark);
    if (passed.length === 0) return [];
    const standing = await this.#options.storedOffsets(passed.map(({ row }) => row));
    return passed
      .filter(({ row }) => !standing.has(row.offset))
      .map((each) => ({ timed: each, reason: 'was not taken when its block was written first' }));
  }

  release(): void {}
}
