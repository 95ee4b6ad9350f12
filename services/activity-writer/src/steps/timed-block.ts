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

/** A row with its time and the record it was read from. */
export interface TimedRow<R> {
  readonly row: R;
  readonly record: StreamRecord;
}

export interface TimedRows<R> {
  readonly rows: readonly R[];
  /**
   * Epoch microseconds. The block's times, including those of earlier attempts, are above `after` and at most `end`.
   */
  readonly after: number;
  readonly end: number;
  /** True if an earlier owner committed the intent and may have written rows that the block no longer contains. */
  readonly isRecovered: boolean;
  readonly block: BlockName;
  /** Shared by all attempts at the block. */
  readonly notes: TokenNotes;
  readonly signal: AbortSignal;
}

export interface Refusal<R> {
  readonly timed: TimedRow<R>;
  readonly reason: string;
}

export interface TimedBlockOptions<R> {
  readonly readRow: ReadRow<R>;
  /** Returns true for a tick, which gets a time but no row. */
  readonly isTick: (record: StreamRecord) => boolean;
  /** Returns a partition's published watermark in epoch microseconds, 0 if there is none. @throws RetryableFault */
  readonly readWatermark: (partition: number) => Promise<number>;
  /** Returns the offsets of rows that are already stored. @throws RetryableFault */
  readonly storedOffsets: (rows: readonly R[]) => Promise<ReadonlySet<number>>;
  /** Returns the rows that must not be written. @throws RetryableFault */
  readonly refuse: (rows: readonly TimedRow<R>[]) => Promise<readonly Refusal<R>[]>;
  /** Resolves when the dead letters are acknowledged. @throws RetryableFault */
  readonly publishDeadLetters: (deadLetters: readonly DeadLetter[]) => Promise<void>;
  readonly onRecordRead: (partition: number) => void;
  /** @throws RetryableFault if the call should be repeated */
  readonly write: (rows: TimedRows<R>) => Promise<void>;
}

interface BufferedRecord<R> {
  readonly record: StreamRecord;
  /** Index among all of the block's records, each of which gets a time. */
  readonly index: number;
  /** null if the schema was not available when the record was added. */
  readonly row: R | null;
}

/**
 * A block whose rows get their times when the block is closed. Every record gets a time, including records that become
 * no row, so that times depend only on the log.
 */
export class TimedBlock<R extends LoggedVersion> implements BlockBuilder {
  readonly #options: TimedBlockOptions<R>;
  readonly #partition: number;
  readonly #notes = createTokenNotes();
  readonly #records: LoggedRecord[] = [];
  readonly #buffered: BufferedRecord<R>[] = [];
  #ticks = 0;
  #bytes = 0;
  #times: BlockTimes | null = null;
  /** True if an earlier owner committed the intent and may have published a watermark that covers the block. */
  #isRecovered = false;
  /** Selected by the first `write`. */
  #rowsToWrite: readonly R[] | null = null;

  constructor(options: TimedBlockOptions<R>, partition: number) {
    this.#options = options;
    this.#partition = partition;
  }

  /**
   * The number of rows. Ticks count, because a block that contains only ticks must still be written to advance the
   * watermark. A recovered block counts even without records, because its earlier owner's writes must be completed.
   */
  get rows(): number {
    return this.#buffered.length + this.#ticks + (this.#isRecovered ? 1 : 0);
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
    const reading = readRow.readNow(record);
    if (reading.kind === 'unreadable') return { kind: 'deadLetter', reason: reading.reason };
    const row = reading.kind === 'row' ? reading.row : null;
    this.#buffered.push({ record, row, index: this.#records.length - 1 });
    this.#bytes += record.value?.length ?? 0;
    return { kind: 'ok' };
  }

  async settle(origin: BlockOrigin): Promise<BlockTrace> {
    this.#isRecovered = origin.basis !== null;
    // For a recovered block, the published watermark is not used, because it may already cover the block.
    const watermark = origin.basis === null ? await this.#options.readWatermark(this.#partition) : 0;
    this.#times = assignTimes(this.#records, origin, watermark);
    return this.#times.trace;
  }

  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const times = this.#times;
    if (times === null) throw new Error('call settle() before write()');
    this.#rowsToWrite ??= await this.#selectRows(times);
    const { after, end } = times;
    const [rows, isRecovered, notes] = [this.#rowsToWrite, this.#isRecovered, this.#notes];
    await this.#options.write({ rows, after, end, isRecovered, block, notes, signal });
  }

  /**
   * Reads the records whose schema was unavailable, and publishes dead letters for records that must not be written.
   */
  async #selectRows({ times }: BlockTimes): Promise<R[]> {
    const { readRow, publishDeadLetters } = this.#options;
    const deadLetters: DeadLetter[] = [];
    const timed: TimedRow<R>[] = [];
    for (const { record, row: decoded, index } of this.#buffered) {
      const reading = decoded === null ? await readRow.readLater(record) : { kind: 'row' as const, row: decoded };
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
   * Finds rows below the published watermark that the earlier owner did not write, for example because its registry
   * lacked the schema. Readers have passed this watermark, so no row may be added below it.
   */
  async #findTooLate(timed: readonly TimedRow<R>[]): Promise<Refusal<R>[]> {
    if (!this.#isRecovered) return [];
    const watermark = await this.#options.readWatermark(this.#partition);
    const published = timed.filter(({ row }) => row.updatedAt <= watermark);
    if (published.length === 0) return [];
    const stored = await this.#options.storedOffsets(published.map(({ row }) => row));
    return published
      .filter(({ row }) => !stored.has(row.offset))
      .map((each) => ({ timed: each, reason: 'was not accepted when its block was first written' }));
  }

  release(): void {}
}

/** A record's offset and time. */
export interface LoggedRecord {
  readonly offset: number;
  /** Epoch milliseconds from the broker's clock. */
  readonly timestampMs: number;
}

/** The `updated_at` values of one block, in epoch microseconds. */
interface BlockTimes {
  readonly times: readonly number[];
  /**
   * Exclusive lower bound of the values in all attempts at this block; may equal the last value of an earlier block.
   */
  readonly after: number;
  /** The highest value that any attempt at this block has used. */
  readonly end: number;
  /** Stored in the block's commits. */
  readonly trace: BlockTrace;
}

/** The inputs, besides the records, from which a block's values are computed, in epoch microseconds. */
interface Basis {
  /** The last value before the block, and the watermark when the intent was committed; 0 if there is none. */
  readonly last: number;
  readonly watermark: number;
  /** The block when the intent was committed: its last value, its record count, and its first offset. */
  readonly end: number;
  readonly count: number;
  readonly firstOffset: number;
}

const US_PER_MS = 1_000;

/**
 * Assigns each record its `updated_at`: the log time, but above the previous record and the watermark. A recovered
 * block gets the same values as before, from the basis in its intent. If the block has since lost records, it gets
 * values above all earlier values, derived from offsets, so that every later attempt computes the same values.
 * @param watermark ignored for a recovered block
 * @throws Error if a commit has contents that this release cannot parse
 */
export function assignTimes(records: readonly LoggedRecord[], origin: BlockOrigin, watermark: number): BlockTimes {
  const recovered = origin.basis === null ? null : parseBasis(origin.basis);
  const from = recovered ?? { last: parseCarried(origin.carried), watermark };
  const after = Math.max(from.last, from.watermark);
  const times = toIncreasing(records, after);
  const end = times.at(-1) ?? after;
  const firstOffset = records[0]?.offset ?? 0;
  const basis: Basis = { last: from.last, watermark: from.watermark, end, count: records.length, firstOffset };
  if (recovered === null || (recovered.count === basis.count && recovered.end === end))
    return toBlockTimes({ times, after, end }, basis);
  const newTimes = records.map(({ offset }) => recovered.end + 1 + offset - recovered.firstOffset);
  return toBlockTimes({ times: newTimes, after, end: newTimes.at(-1) ?? recovered.end }, recovered);
}

function toIncreasing(records: readonly LoggedRecord[], before: number): number[] {
  let last = before;
  return records.map(({ timestampMs }) => {
    last = Math.max(timestampMs * US_PER_MS, last + 1);
    return last;
  });
}

function toBlockTimes(bounds: Omit<BlockTimes, 'trace'>, basis: Basis): BlockTimes {
  const { last, watermark, count, firstOffset } = basis;
  const basisJson = JSON.stringify([last, watermark, basis.end, count, firstOffset]);
  return { ...bounds, trace: { basis: basisJson, carries: String(bounds.end) } };
}

function parseBasis(json: string): Basis {
  const [last = 0, watermark = 0, end = 0, count = 0, firstOffset = 0] = parseNumbers(json, 5);
  return { last, watermark, end, count, firstOffset };
}

const parseCarried = (text: string | null): number => (text === null ? 0 : parseNumbers(`[${text}]`, 1)[0]!);

const numbers = z.array(z.int().min(0));

function parseNumbers(json: string, count: number): number[] {
  try {
    return numbers.length(count).parse(JSON.parse(json));
  } catch (cause) {
    throw new Error(`commit metadata was written by another release: ${json}`, { cause });
  }
}
