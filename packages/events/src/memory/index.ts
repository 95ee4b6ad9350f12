import type { BlockInsert, EventStore, EventTable, OffsetRange } from '../store.ts';

/** An event store in memory, for tests of what stands before it. */
export interface MemoryEventStore extends EventStore {
  /** Blocks that were stored, each token once. */
  readonly blocks: readonly Readonly<{ table: EventTable; token: string; rows: Buffer }>[];
  /** The next insert throws this instead. */
  failNext(fault: Error): void;
  /** What `storedOffsets` answers from now on. */
  setStoredOffsets(offsets: readonly number[]): void;
}

export function createMemoryEventStore(): MemoryEventStore {
  const blocks: { table: EventTable; token: string; rows: Buffer }[] = [];
  const faults: Error[] = [];
  let offsets: readonly number[] = [];
  return {
    blocks,
    failNext: (fault) => void faults.push(fault),
    setStoredOffsets: (stored) => {
      offsets = stored;
    },
    async insert({ table, token, rows }: BlockInsert) {
      const fault = faults.shift();
      if (fault !== undefined) throw fault;
      if (blocks.some((block) => block.table === table && block.token === token)) return;
      // A copy: the caller uses its buffer again.
      blocks.push({ table, token, rows: Buffer.from(rows) });
    },
    async storedOffsets(_table: EventTable, range: OffsetRange) {
      return new Set(offsets.filter((offset) => offset >= range.start && offset < range.end));
    },
    ready: async () => true,
    close: async () => {},
  };
}
