import type { EventStore, EventTable, RowBuffer } from '@playline/events';
import { StoreFault } from '@playline/events';
import { type BlockName, RetryableFault } from '@playline/stream';
import type { WriterMetrics } from '../writer-metrics.ts';

/** Rows of one block for one table. */
export interface BlockRows {
  table: EventTable;
  rows: RowBuffer;
  block: BlockName;
  transformVersion: number;
  signal: AbortSignal;
}

export type WriteRows = (rows: BlockRows) => Promise<void>;

/**
 * The store remembers 100,000 tokens a partition, one to five hours of traffic. Ten minutes stay far below, and no
 * healthy restart takes as long.
 */
const TOKEN_TRUSTED_MS = 10 * 60 * 1000;

/** Tables where a row written twice is one row at once: its version is its place in the log. */
const FOLDING_TABLES: ReadonlySet<EventTable> = new Set(['identity_overrides']);

/**
 * Creates the step that stores a block's rows once.
 * The token names exactly one set of rows: topic, partition, offsets, time of the first record, table, version of the
 * transform and, for a log that was replaced, when it was decided to read on. Whoever writes the block again, this process or the next owner, writes it under the same token, and the
 * store keeps one of the two.
 */
export function createWriteRows(options: { store: EventStore; metrics: WriterMetrics }): WriteRows {
  const { store, metrics } = options;
  return async ({ table, rows, block, transformVersion, signal }) => {
    const { topic, partition, start, end, firstTimestampMs = 0, logDecidedAtMs } = block;
    const place = `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}`;
    const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
    const token = `${place}|${table}|${transformVersion}${log}`;
    try {
      let { bytes, count } = { bytes: rows.toBytes(), count: rows.rows };
      if ((block.intentAgeMs ?? 0) > TOKEN_TRUSTED_MS && !FOLDING_TABLES.has(table)) {
        const stored = await store.storedOffsets(table, { partition, start, end });
        const rest = rows.withoutOffsets(stored);
        bytes = rest.bytes;
        count = rest.rows;
      }
      if (count === 0) return;
      const stop = metrics.startInsert(table);
      await store.insert({ table, rows: bytes, token, signal });
      stop(count);
    } catch (error) {
      if (error instanceof StoreFault && error.retryable) throw new RetryableFault(error.message, { cause: error });
      throw error;
    }
  };
}
