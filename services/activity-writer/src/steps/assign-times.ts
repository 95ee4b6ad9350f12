import type { BlockOrigin, BlockTrace } from '@playline/stream';

/** Where a record stands in its partition, and when the broker took it. */
export interface LoggedRecord {
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock. */
  readonly timestampMs: number;
}

/** Values of `updated_at` of one block, in epoch microseconds. */
export interface BlockTimes {
  /** One a record, in the order of the log. */
  readonly times: readonly number[];
  /** All of this block, and of earlier attempts at it, are greater; all of blocks before are not. */
  readonly after: number;
  /** The greatest that this block, or an earlier attempt at it, has given away. */
  readonly end: number;
  /** What its commits keep. */
  readonly trace: BlockTrace;
}

/** What the values of a block follow from besides its records, in epoch microseconds. */
interface Basis {
  /** The last value before the block, and the watermark that was published when it was named; 0 for none. */
  readonly last: number;
  readonly watermark: number;
  /** What the block was when it was named: its last value, how many records it had, the offset of the first. */
  readonly end: number;
  readonly count: number;
  readonly firstOffset: number;
}

const US_PER_MS = 1_000;

/**
 * Gives each record of a block its `updated_at`: the time of the log, and always more than the record before it and than
 * the watermark. Every record takes a value, whatever becomes of it, so that values depend on the log alone. Records of one
 * log-append batch share a millisecond, and a broker's clock may step back: values then go on by a microsecond.
 *
 * A block that was named before is built from the basis that its commit kept, so its records get the same values again.
 * That fails when it has lost records since, to retention or compaction. Then its records get values above all that the
 * earlier attempt may have used, computed from their offsets: a third attempt that finds even fewer records computes the
 * same.
 * @param watermark published for the partition; it is not looked at for a block that was named
 * @throws Error when a commit holds what this release does not understand
 */
export function assignTimes(records: readonly LoggedRecord[], origin: BlockOrigin, watermark: number): BlockTimes {
  const named = origin.basis === null ? null : parseBasis(origin.basis);
  const from = named ?? { last: parseCarried(origin.carried), watermark };
  const after = Math.max(from.last, from.watermark);
  const times = follow(records, after);
  const end = times.at(-1) ?? after;
  const firstOffset = records[0]?.offset ?? 0;
  const basis: Basis = { last: from.last, watermark: from.watermark, end, count: records.length, firstOffset };
  if (named === null || (named.count === basis.count && named.end === end))
    return toBlockTimes({ times, after, end }, basis);
  const later = records.map(({ offset }) => named.end + 1 + offset - named.firstOffset);
  return toBlockTimes({ times: later, after, end: later.at(-1) ?? named.end }, named);
}

function follow(records: readonly LoggedRecord[], before: number): number[] {
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
  const parts = toNumbers(text, 5);
  const [last = 0, watermark = 0, end = 0, count = 0, firstOffset = 0] = parts;
  return { last, watermark, end, count, firstOffset };
}

const parseCarried = (text: string | null): number => (text === null ? 0 : toNumbers(`[${text}]`, 1)[0]!);

function toNumbers(text: string, count: number): number[] {
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    parts = null;
  }
  if (
    !Array.isArray(parts) ||
    parts.length !== count ||
    !parts.every((part) => Number.isSafeInteger(part) && part >= 0)
  )
    throw new Error(`a commit holds values of another release: ${text}`);
  return parts;
}
