import type { LoggedVersion } from '@playline/chain';
import {
  type BlockBuilder,
  type BlockName,
  type BlockOrigin,
  type BlockTrace,
  createTokenNotes,
  type DeadLetter,
  type Outcome,
  type StreamRecord,
  type TokenNotes,
} from '@playline/stream';
import { z } from 'zod';
import type { ReadRow } from './read-row.ts';

/** A row with its time, and its record. */
export interface TimedRow<R> {
  readonly row: R;
  readonly record: StreamRecord;
}

export interface TimedRows<R> {
  readonly rows: readonly R[];
  /** Epoch microseconds: times of the block, including earlier attempts, are above `after` and at most `end`. */
  readonly after: number;
  readonly end: number;
  /** An earlier owner named the block, and may have written rows that are no longer in the block. */
  readonly isRecovered: boolean;
  readonly block: BlockName;
  /** One per block, kept between attempts. */
  readonly notes: TokenNotes;
  readonly signal: AbortSignal;
}

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
  /** Offsets of the rows that are stored. @throws RetryableFault */
  readonly storedOffsets: (rows: readonly R[]) => Promise<ReadonlySet<number>>;
  /** Finds the rows that must not be written. @throws RetryableFault */
  readonly refuse: (rows: readonly TimedRow<R>[]) => Promise<readonly Refusal<R>[]>;
  /** Resolves when the dead letters are acknowledged. @throws RetryableFault */
  readonly publishDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>;
  readonly onRecordRead: (partition: number) => void;
  /** @throws RetryableFault to be called again */
  readonly write: (rows: TimedRows<R>) => Promise<void>;
}

interface HeldRecord<R> {
  readonly record: StreamRecord;
  /** Index among all records of the block, each of which gets a time. */
  readonly index: number;
  /** null when the schema was not known yet. */
  readonly row: R | null;
}

/**
 * A block whose rows get their times when it is closed. Every record gets a time, even a record that becomes no row, so
 * that times do not depend on which records become rows.
 */
export class TimedBlock<R extends LoggedVersion> implements BlockBuilder {
  readonly #options: TimedBlockOptions<R>;
  readonly #partition: number;
  readonly #notes = createTokenNotes();
  readonly #records: LoggedRecord[] = [];
  readonly #held: HeldRecord<R>[] = [];
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
   * block that an earlier owner named and that has lost all of its records: that owner's writes must be completed.
   */
  get rows(): number {
    return this.#held.length + this.#ticks + (this.#isRecovered ? 1 : 0);
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(record: StreamRecord): Outcome {
    const { readRow, isTick, onRecordRead } = this.#options;
    const { offset, timestampMs } = record;
    this.#records.push({ offset, timestampMs });
    if (isTick(record)) {
      this.#ticks++;
      return { kind: 'drop', reason: 'tick' };
    }
    onRecordRead(this.#partition);
    const reading = readRow.now(record);
    if (reading.kind === 'unreadable') return { kind: 'deadLetter', reason: reading.reason };
    const row = reading.kind === 'row' ? reading.row : null;
    this.#held.push({ record, row, index: this.#records.length - 1 });
    this.#bytes += record.value?.length ?? 0;
    return { kind: 'ok' };
  }

  async settle(origin: BlockOrigin): Promise<BlockTrace> {
    this.#isRecovered = origin.basis !== null;
    // A named block does not use the published watermark, which may be its own.
    const watermark = origin.basis === null ? await this.#options.readWatermark(this.#partition) : 0;
    this.#times = assignTimes(this.#records, origin, watermark);
    return this.#times.trace;
  }

  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const times = this.#times;
    if (times === null) throw new Error('settle is called before write');
    this.#kept ??= await this.#selectRows(times);
    const { after, end } = times;
    const [rows, isRecovered, notes] = [this.#kept, this.#isRecovered, this.#notes];
    await this.#options.write({ rows, after, end, isRecovered, block, notes, signal });
  }

  /**
   * Reads records that could not be read on arrival, and publishes dead letters for records that must not be written.
   */
  async #selectRows({ times }: BlockTimes): Promise<R[]> {
    const { readRow, publishDeadLetters } = this.#options;
    const deadLetters: DeadLetter[] = [];
    const timed: TimedRow<R>[] = [];
    for (const { record, row: known, index } of this.#held) {
      const reading = known === null ? await readRow.later(record) : { kind: 'row' as const, row: known };
      if (reading.kind === 'unreadable') deadLetters.push({ record, reason: reading.reason });
      else timed.push({ record, row: { ...reading.row, updatedAt: times[index]! } });
    }
    const refusals = [...(await this.#options.refuse(timed)), ...(await this.#findTooLate(timed))];
    const refused = new Map(refusals.map(({ timed: each, reason }) => [each, reason]));
    for (const [{ record }, reason] of refused) deadLetters.push({ record, reason });
    if (deadLetters.length > 0) await publishDeadLetters(deadLetters);
    return timed.filter((each) => !refused.has(each)).map(({ row }) => row);
  }

  /**
   * Rows below the published watermark that the earlier owner did not write, for example because its registry did not
   * know the schema. Readers have passed the watermark, so nothing may be added below it.
   */
  async #findTooLate(timed: readonly TimedRow<R>[]): Promise<Refusal<R>[]> {
    if (!this.#isRecovered) return [];
    const watermark = await this.#options.readWatermark(this.#partition);
    const passed = timed.filter(({ row }) => row.updatedAt <= watermark);
    if (passed.length === 0) return [];
    const stored = await this.#options.storedOffsets(passed.map(({ row }) => row));
    return passed
      .filter(({ row }) => !stored.has(row.offset))
      .map((each) => ({ timed: each, reason: 'was not accepted when its block was first written' }));
  }

  release(): void {}
}

/** Offset and time of a record. */
export interface LoggedRecord {
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock. */
  readonly timestampMs: number;
}

/** Values of `updated_at` of one block, in epoch microseconds. */
interface BlockTimes {
  readonly times: readonly number[];
  /** Lower bound: below all values of this block and of earlier attempts, but not below values of earlier blocks. */
  readonly after: number;
  /** The largest value that this block, or an earlier attempt at it, has used. */
  readonly end: number;
  /** Stored in the commits of the block. */
  readonly trace: BlockTrace;
}

/** Inputs of a block's values besides its records, in epoch microseconds. */
interface Basis {
  /** The last value before the block, and the watermark published when it was named; 0 for none. */
  readonly last: number;
  readonly watermark: number;
  /** The block when it was named: its last value, its number of records, the offset of the first. */
  readonly end: number;
  readonly count: number;
  readonly firstOffset: number;
}

const US_PER_MS = 1_000;

/**
 * Assigns each record its `updated_at`: the log time, but above the previous record and the watermark. A block that was
 * named before gets the same values from the basis in its commit; if it has lost records since, it gets values above
 * all earlier values, from offsets, so that a third attempt computes the same values. @param watermark not used for a
 * named block @throws Error when a commit has contents that this release does not understand
 */
export function assignTimes(records: readonly LoggedRecord[], origin: BlockOrigin, watermark: number): BlockTimes {
  const named = origin.basis === null ? null : parseBasis(origin.basis);
  const from = named ?? { last: parseCarried(origin.carried), watermark };
  const after = Math.max(from.last, from.watermark);
  const times = toIncreasing(records, after);
  const end = times.at(-1) ?? after;
  const firstOffset = records[0]?.offset ?? 0;
  const basis: Basis = { last: from.last, watermark: from.watermark, end, count: records.length, firstOffset };
  if (named === null || (named.count === basis.count && named.end === end))
    return toBlockTimes({ times, after, end }, basis);
  const later = records.map(({ offset }) => named.end + 1 + offset - named.firstOffset);
  return toBlockTimes({ times: later, after, end: later.at(-1) ?? named.end }, named);
}

function toIncreasing(records: readonly LoggedRecord[], before: number): number[] {
  let last = before;
  return records.map(({ timestampMs }) => {
    last = Math.max(timestampMs * US_PER_MS, last + 1);
    return last;
  });
}

function toBlockTimes(given: Omit<BlockTimes, 'trace'>, basis: Basis): BlockTimes {
  const { last, watermark, count, firstOffset } = basis;
  const text = JSON.stringify([last, watermark, basis.end, count, firstOffset]);
  return { ...given, trace: { basis: text, carries: String(given.end) } };
}

function parseBasis(text: string): Basis {
  const [last = 0, watermark = 0, end = 0, count = 0, firstOffset = 0] = parseNumbers(text, 5);
  return { last, watermark, end, count, firstOffset };
}

const parseCarried = (text: string | null): number => (text === null ? 0 : parseNumbers(`[${text}]`, 1)[0]!);

const numbers = z.array(z.int().min(0));

function parseNumbers(text: string, count: number): number[] {
  try {
    return numbers.length(count).parse(JSON.parse(text));
  } catch (cause) {
    throw new Error(`a commit has values of another release: ${text}`, { cause });
  }
}
