import type { BlockInsert, EventStore, EventTable, OffsetTable, StoredRowsQuery } from '../../store.ts';

/** Effect of a failed insert: nothing, `rows` with their token, or only the `token`, as after a crash. */
export type Leftover = 'nothing' | 'rows' | 'token';

export interface MemoryEventStore extends EventStore {
  /** Stored blocks, one per token. */
  readonly blocks: readonly Readonly<{ table: EventTable; token: string; rows: Buffer }>[];
  failNext(fault: Error, leftover?: Leftover): void;
  /** Sets additional offsets that `storedOffsets` returns for every table. */
  setStoredOffsets(offsets: readonly number[]): void;
}

export function createMemoryEventStore(
  readOffsets: (block: { table: EventTable; rows: Buffer }) => readonly number[] = () => [],
): MemoryEventStore {
  const blocks: { table: EventTable; token: string; rows: Buffer }[] = [];
  const tokens = new Set<string>();
  const faults: { fault: Error; leftover: Leftover }[] = [];
  let additional: readonly number[] = [];
  const store = ({ table, token, rows }: BlockInsert) => {
    const isNew = !tokens.has(`${table} ${token}`);
    tokens.add(`${table} ${token}`);
    // A copy, because the caller reuses its buffer.
    if (isNew) blocks.push({ table, token, rows: Buffer.from(rows) });
  };
  return {
    blocks,
    failNext: (fault, leftover = 'nothing') => void faults.push({ fault, leftover }),
    setStoredOffsets: (stored) => {
      additional = stored;
    },
    async insert(block: BlockInsert) {
      const { fault, leftover } = faults.shift() ?? {};
      if (leftover === 'token') tokens.add(`${block.table} ${block.token}`);
      if (fault === undefined || leftover === 'rows') store(block);
      if (fault !== undefined) throw fault;
    },
    async storedOffsets(table: OffsetTable, range: StoredRowsQuery) {
      const own = blocks.filter((block) => block.table === table).flatMap((block) => readOffsets(block));
      return new Set([...additional, ...own].filter((offset) => offset >= range.start && offset < range.end));
    },
    ready: async () => true,
    close: async () => {},
  };
}
