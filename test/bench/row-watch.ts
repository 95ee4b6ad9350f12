import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './clickhouse.ts';

/** Interval of polls: the precision of a moment. Each poll costs ClickHouse some milliseconds. */
const LOOK_EVERY_MS = 50;

/** When rows of a table became visible, by partition of the log and offset. */
export interface RowWatch {
  /** @returns when a reader first saw the row, by the wall clock; null when none did */
  seenAtMs(partition: number, offset: number): number | null;
  /** Polls at once, in addition to the regular polls. */
  look(): Promise<void>;
  close(): Promise<void>;
}

interface Seen {
  offset: number;
  atMs: number;
}

/** Rows of a partition become visible in the order of the log, so the greatest offset tells which rows are visible. */
export function openRowWatch(engine: Engine, table: string): RowWatch {
  const partitions = new Map<number, Seen[]>();
  let isOver = false;
  const look = async () => {
    const answer = await engine.ask(
      `SELECT kafka_partition, max(kafka_offset) FROM ${table} GROUP BY kafka_partition FORMAT TSV`,
    );
    const atMs = Date.now();
    for (const line of answer.split('\n').filter((text) => text !== '')) {
      const [partition = 0, offset = 0] = line.split('\t').map(Number);
      const seen = partitions.get(partition) ?? [];
      partitions.set(partition, seen);
      if (offset > (seen.at(-1)?.offset ?? -1)) seen.push({ offset, atMs });
    }
  };
  const looking = (async () => {
    while (!isOver) {
      await look();
      await delay(LOOK_EVERY_MS);
    }
  })();
  // `close` reports the error. Until then it must not count as an unhandled rejection.
  looking.catch(() => {});
  return {
    look,
    seenAtMs: (partition, offset) => findFirst(partitions.get(partition) ?? [], offset),
    close: async () => {
      isOver = true;
      await looking;
    },
  };
}

/** The first poll that saw the offset, found by binary search. */
function findFirst(seen: readonly Seen[], offset: number): number | null {
  let [low, high] = [0, seen.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seen[middle] as Seen).offset < offset) low = middle + 1;
    else high = middle;
  }
  return seen[low]?.atMs ?? null;
}
