import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './clickhouse.ts';

/** How exactly a moment is known, and what a look may cost: some milliseconds of the engine each. */
const LOOK_EVERY_MS = 50;

/** When which rows of a table could be read: per partition of the log, offsets rising. */
export interface RowWatch {
  /** @returns the moment a reader first saw the row, by the clock of the machine; null when none did */
  seenAtMs(partition: number, offset: number): number | null;
  /** Looks at once, besides the looks at regular times. */
  look(): Promise<void>;
  close(): Promise<void>;
}

interface Seen {
  offset: number;
  atMs: number;
}

/** Rows of one partition appear in the order of the log, so the greatest offset says which can be read. */
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
  // Told by `close`, and no fault that nobody waits for until then.
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

/** The first look that saw the offset, by halves. */
function findFirst(seen: readonly Seen[], offset: number): number | null {
  let [low, high] = [0, seen.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seen[middle] as Seen).offset < offset) low = middle + 1;
    else high = middle;
  }
  return seen[low]?.atMs ?? null;
}
