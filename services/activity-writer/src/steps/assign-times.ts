import type { BlockOrigin, BlockTrace } from '@playline/stream';

/** Place of a record in its partition, and its time. */
export interface LoggedRecord {
  readonly offset: number;
  /** Epoch milliseconds by the broker's clock. */
  readonly timestampMs: number;
}

/** Values of `updated_at` of one block, in epoch microseconds. */
export interface BlockTimes {
  /** One for each record, in the order of the log. */
  readonly times: readonly number[];
  /** Lower bound: below all values of this block and of earlier attempts, but not below those of earlier blocks. */
  readonly after: number;
  /** The largest value that this block, or an earlier attempt at it, has used. */
  readonly end: number;
  /** What the commits of the block store. */
  readonly trace: BlockTrace;
}

/** What the values of a block depend on besides its records, in epoch microseconds. */
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
 * Gives each record of a block its `updated_at`: the time of the log, but always above the record before and above the
 * watermark. Every record gets a value, even if it becomes no row, so that values depend on the log alone. Records of
 * one batch may share a millisecond, and a broker's clock may step back: then each value is one microsecond more.
 * A block that was named before is built from the basis stored in its commit, so its records get the same values again.
 * If it has lost records since, to retention or compaction, its records get values above all that the earlier attempt
 * may have used, computed from their offsets: so a third attempt with even fewer records computes the same.
 * @param watermark published for the partition; not used for a block that was named
 * @throws Error when a commit has contents that this release does not understand
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
