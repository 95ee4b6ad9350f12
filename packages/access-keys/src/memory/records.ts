import type { Change, LogRange, Placed, RecordKind, RecordLog } from '../records/record-log.ts';
import { isLater, type RecordView, type ViewUpdate } from '../records/record-view.ts';
import { IncompleteViewFault } from '../records/view-faults.ts';

/** Records of one kind in memory, for tests and experiments. */
export interface MemoryRecordView<R extends Change> extends RecordView<R> {
  /** Simulates a restart: the data stay, but the view is incomplete. */
  restart(): void;
  /** Simulates a store that was emptied. */
  empty(): void;
}

export function createMemoryRecords<R extends Change>(kind: RecordKind<R>): MemoryRecordView<R> {
  const records = new Map<string, Placed<R>>();
  const places = new Map<number, number>();
  const state = { run: 0, completeIn: null as string | null, version: 0 };
  const bringIn = ({ changes, completeIn }: ViewUpdate<R>, isWhole: boolean) => {
    for (const placed of changes) {
      const id = kind.idOf(placed.record);
      if (isLater(placed, records.get(id))) records.set(id, placed);
    }
    state.version++;
    if (completeIn !== null && isWhole) state.completeIn = completeIn;
  };
  const assertRun = ({ completeIn }: ViewUpdate<R>) => {
    if (completeIn !== null && completeIn !== String(state.run))
      throw new Error('the store was started anew meanwhile');
  };
  return {
    standing: async () => ({ run: String(state.run), completeIn: state.completeIn, places: new Map(places) }),
    readSince: async (version) => {
      if (state.completeIn !== String(state.run)) throw new IncompleteViewFault(`the store has lost ${kind.name}`);
      const present = String(state.version);
      return {
        version: present,
        records: version === present ? null : [...records.values()].map(({ record }) => record),
      };
    },
    update: async (update) => {
      assertRun(update);
      const moved = update.moves.filter(({ partition, from }) => (places.get(partition) ?? null) === from);
      bringIn(update, moved.length === update.moves.length);
      for (const { partition, to } of moved) places.set(partition, to);
    },
    restore: async (update) => {
      assertRun(update);
      for (const { record, offset } of update.removed)
        if (records.get(kind.idOf(record))?.offset === offset) records.delete(kind.idOf(record));
      bringIn(update, true);
      places.clear();
      for (const { partition, to } of update.moves) places.set(partition, to);
    },
    held: async () => [...records.values()],
    exclusive: createTurns(),
    restart: () => void state.run++,
    empty: () => {
      records.clear();
      places.clear();
      state.completeIn = null;
    },
  };
}

/** Runs work in turns, also after one that failed. */
function createTurns(): RecordView<Change>['exclusive'] {
  let turn: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = turn.then(work, work);
    turn = mine.catch(() => {});
    return mine;
  };
}

/** A log of one partition in memory. `appended` has all records in order. */
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
