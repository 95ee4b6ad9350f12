import type { Change, LogRange, ReceivedRecord, RecordKind, RecordLog } from '../records/record-log.ts';
import { type Author, createRecordStore, type RecordStore } from '../records/record-store.ts';
import { IncompleteViewFault, isLater, type RecordView, type ViewUpdate } from '../records/record-view.ts';

export interface MemoryRecordView<R extends Change> extends RecordView<R> {
  /** Simulates a restart, after which the data is possibly incomplete. */
  restart(): void;
  /** Simulates the loss of all data. */
  empty(): void;
}

export function createMemoryRecords<R extends Change>(kind: RecordKind<R>): MemoryRecordView<R> {
  const records = new Map<string, ReceivedRecord<R>>();
  const offsets = new Map<number, number>();
  const state = { run: 0, completeIn: null as string | null, version: 0 };
  const apply = ({ changes, completeIn }: ViewUpdate<R>, isWhole: boolean) => {
    for (const received of changes) {
      const id = kind.idOf(received.record);
      if (isLater(received, records.get(id))) records.set(id, received);
    }
    state.version++;
    if (completeIn !== null && isWhole) state.completeIn = completeIn;
  };
  const assertRun = ({ completeIn }: ViewUpdate<R>) => {
    if (completeIn !== null && completeIn !== String(state.run))
      throw new Error('the store was restarted during the update');
  };
  let last: Promise<unknown> = Promise.resolve();
  return {
    kind,
    status: async () => ({ run: String(state.run), completeIn: state.completeIn, offsets: new Map(offsets) }),
    readSince: async (known) => {
      if (state.completeIn !== String(state.run)) throw new IncompleteViewFault(`the ${kind.name} are incomplete`);
      const version = String(state.version);
      const isWhole = known !== version;
      return { version, isWhole, records: isWhole ? [...records.values()].map(({ record }) => record) : [] };
    },
    update: async (update) => {
      assertRun(update);
      const moved = update.moves.filter(({ partition, from }) => (offsets.get(partition) ?? null) === from);
      apply(update, moved.length === update.moves.length);
      for (const { partition, to } of moved) offsets.set(partition, to);
    },
    restore: async (update) => {
      assertRun(update);
      for (const { record, offset } of update.removed)
        if (records.get(kind.idOf(record))?.offset === offset) records.delete(kind.idOf(record));
      apply(update, true);
      offsets.clear();
      for (const { partition, to } of update.moves) offsets.set(partition, to);
    },
    readStored: async () => [...records.values()],
    exclusive: (work) => {
      const result = last.then(work, work);
      last = result.catch(() => {});
      return result;
    },
    restart: () => void state.run++,
    empty: () => {
      records.clear();
      offsets.clear();
      state.completeIn = null;
    },
  };
}

/** An in-memory log with one partition. */
export interface MemoryRecordLog<R> extends RecordLog<R> {
  readonly appended: R[];
}

export function createMemoryRecordLog<R extends Change>(): MemoryRecordLog<R> {
  const appended: R[] = [];
  const read = ({ partition, start, end }: LogRange) =>
    appended.slice(start, end).map((record, at) => ({ record, partition, offset: start + at }));
  return {
    appended,
    append: async (record) => ({ partition: 0, offset: appended.push(record) - 1 }),
    bounds: async () => [{ partition: 0, start: 0, end: appended.length }],
    read: async (range) => read(range),
  };
}

export const TEST_AUTHOR: Author = { changedBy: 'a test', requestId: 'r' };

export function createMemoryStore<R extends Change>(kind: RecordKind<R>, author: Author = TEST_AUTHOR) {
  const [view, log] = [createMemoryRecords(kind), createMemoryRecordLog<R>()];
  return { view, log, store: createRecordStore({ view, log }, author) };
}

/** Writes only to the view, under a partition that no topic has, so that the view matches an empty log. */
export function createUnloggedStore<R extends Change>(
  view: RecordView<R>,
  author: Author = TEST_AUTHOR,
): RecordStore<R> {
  let offset = 0;
  return createRecordStore(
    {
      view,
      log: {
        append: async () => ({ partition: 1_000_000, offset: offset++ }),
        bounds: async () => [],
        read: async () => [],
      },
    },
    author,
  );
}
