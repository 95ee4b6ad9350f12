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
  /** Epoch microseconds: times of the block, and of attempts at it before, are greater than the first, up to the second. */
  readonly after: number;
  readonly end: number;
  /** An owner before named the block, and may have written of it what is not among its rows now. */
  readonly isRecovered: boolean;
  readonly block: BlockName;
  readonly transformVersion: number;
  /** One for a block, kept from attempt to attempt. */
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
  /** A record that says only what time it is. */
  readonly isTick: (record: StreamRecord) => boolean;
  /** The watermark that stands for a partition, epoch microseconds; 0 for none. @throws RetryableFault */
  readonly readWatermark: (partition: number) => Promise<number>;
  /** Which of these rows stand, by their offsets. @throws RetryableFault */
  readonly storedOffsets: (rows: readonly R[]) => Promise<ReadonlySet<number>>;
  /** Which rows must not be written. @throws RetryableFault */
  readonly refuse: (rows: readonly TimedRow<R>[]) => Promise<readonly Refusal<R>[]>;
  /** Resolves when they are acknowledged. @throws RetryableFault */
  readonly publishLetters: (letters: readonly DeadLetter[]) => Promise<void>;
  /** Told of every record that is read and no tick. */
  readonly onTaken: (partition: number) => void;
  /** @throws RetryableFault to be called again */
  readonly write: (rows: TimedRows<R>) => Promise<void>;
}

interface Held<R> {
  readonly record: StreamRecord;
  /** Index among all records of the block, which take a time each. */
  readonly index: number;
  /** Null when its schema was not known yet. */
  readonly row: R | null;
}

/**
 * A block whose rows get their times when it is cut. Every record takes a time, also one that becomes no row, so times do
 * not depend on which records become rows.
 */
export class TimedBlock<R extends LoggedVersion> implements BlockBuilder {
  readonly #options: TimedBlockOptions<R>;
  readonly #partition: number;
  readonly #transformVersion: number;
  readonly #notes = createNameNotes();
  readonly #places: LoggedRecord[] = [];
  readonly #held: Held<R>[] = [];
  #ticks = 0;
  #bytes = 0;
  #times: BlockTimes | null = null;
  /** An owner before named it, and may have published that it is stored. */
  #isRecovered = false;
  /** What is written, once that is known. */
  #kept: readonly R[] | null = null;

  constructor(options: TimedBlockOptions<R>, partition: number, transformVersion: number) {
    this.#options = options;
    this.#partition = partition;
    this.#transformVersion = transformVersion;
  }

  /**
   * A tick is no row, but a block of ticks alone is written all the same, since its time moves the watermark. So is a
   * block that an owner before named and that has lost all of its records since: what that owner began is finished.
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
    // Of a block that was named, what is published now may be its own.
    const watermark = origin.basis === null ? await this.#options.readWatermark(this.#partition) : 0;
    this.#times = assignTimes(this.#places, origin, watermark);
    return this.#times.trace;
  }

  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const times = this.#times;
    if (times === null) throw new Error('a block is settled before it is written');
    this.#kept ??= await this.#sift(times);
    const [transformVersion, notes] = [this.#transformVersion, this.#notes];
    const { after, end } = times;
    const of = { rows: this.#kept, after, end, isRecovered: this.#isRecovered };
    await this.#options.write({ ...of, block, transformVersion, notes, signal });
  }

  /** Reads what could not be read when it came, and sends to the dead letters what must not be written. */
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
   * Rows that the owner before did not write although its watermark, which readers go by, is above them. So it is where
   * that owner could not read a record which can be read now, because the registry did not know its schema then. Below a
   * watermark nothing may be added any more.
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
