import type { BlockInsert, EventStore, EventTable, OffsetTable, StoredRowsQuery } from '../../store.ts';

/** What a failed insert leaves behind: nothing, `rows` with their token, or `token` alone after a crash. */
export type Leftover = 'nothing' | 'rows' | 'token';

/** An event store in memory, for tests of its callers. */
export interface MemoryEventStore extends EventStore {
  /** Inserts whose rows were stored, each token once. */
  readonly blocks: readonly Readonly<{ table: EventTable; token: string; rows: Buffer }>[];
  /** The next insert throws this instead. */
  failNext(fault: Error, leftover?: Leftover): void;
  /** Further offsets that `storedOffsets` reports, for every table. */
  setStoredOffsets(offsets: readonly number[]): void;
}

/** @param offsetsOf reads the offsets of a stored block's rows; default: none */
export function createMemoryEventStore(
  offsetsOf: (block: { table: EventTable; rows: Buffer }) => readonly number[] = () => [],
): MemoryEventStore {
  const blocks: { table: EventTable; token: string; rows: Buffer }[] = [];
  const tokens = new Set<string>();
  const faults: { fault: Error; leftover: Leftover }[] = [];
  let others: readonly number[] = [];
  const keep = ({ table, token, rows }: BlockInsert) => {
    const isNew = !tokens.has(`${table} ${token}`);
    tokens.add(`${table} ${token}`);
    // A copy, because the caller reuses its buffer.
    if (isNew) blocks.push({ table, token, rows: Buffer.from(rows) });
  };
  return {
    blocks,
    failNext: (fault, leftover = 'nothing') => void faults.push({ fault, leftover }),
    setStoredOffsets: (stored) => {
      others = stored;
    },
    async insert(block: BlockInsert) {
      const { fault, leftover } = faults.shift() ?? {};
      if (leftover === 'token') tokens.add(`${block.table} ${block.token}`);
      if (fault === undefined || leftover === 'rows') keep(block);
      if (fault !== undefined) throw fault;
    },
    async storedOffsets(table: OffsetTable, range: StoredRowsQuery) {
      const own = blocks.filter((block) => block.table === table).flatMap((block) => offsetsOf(block));
      return new Set([...others, ...own].filter((offset) => offset >= range.start && offset < range.end));
    },
    ready: async () => true,
    close: async () => {},
  };
}
