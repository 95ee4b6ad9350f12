import { catchUpInTurn, catchUpRecords, type RecordPair } from './level.ts';
import type { Change, LogRange, Placed, RecordKind, RecordLog } from './record-log.ts';
import { Overtaken, ViewFault } from './view-faults.ts';

/** Who changes something, and with what request. */
export type Author = Pick<Change, 'changedBy' | 'requestId'>;

/** A record without what the store says of the change. */
export type Content<R extends Change> = Omit<R, keyof Change>;

/** One kind of records, for whoever changes them. */
export interface RecordStore<R extends Change> {
  /** All of them, as the log has them. */
  readAll(): Promise<readonly R[]>;
  /**
   * Makes one change: `decide` is given all records, and says what one of them is to be; null changes nothing. Changes take
   * turns, in all processes.
   * @throws what `decide` throws, and then nothing was changed; ViewFault when the log has the change and the view may not;
   *   Overtaken when somebody else changed the same record meanwhile
   */
  change(decide: (records: readonly R[]) => Content<R> | null): Promise<R | null>;
}

/**
 * A store whose changes are in the log before they are in the view. What the log has and the view lacks is brought in before
 * anything is decided, so nothing is decided by half of a change.
 */
export function createRecordStore<R extends Change>(
  kind: RecordKind<R>,
  pair: RecordPair<R, RecordLog<R>>,
  author: Author,
): RecordStore<R> {
  const { view, log } = pair;
  const readView = async () => (await view.readSince(null)).records ?? [];
  return {
    readAll: async () => {
      await catchUpRecords(pair);
      return readView();
    },
    change: (decide) =>
      view.exclusive(async () => {
        // In front of the catch-up: what stands behind these ends may be missing in what is decided by.
        const bounds = await log.bounds();
        await catchUpInTurn(pair);
        const records = await readView();
        const content = decide(records);
        if (content === null) return null;
        const record = stamp(content, { kind, records, author });
        // The guarantee: whoever sees a change in the view finds it in the log, so the log can always give the view back.
        const placed = { record, ...(await log.append(record)) };
        const winner = await findWinner({ kind, log, bounds }, placed);
        await bringIn(kind, pair, winner === null ? placed : await appendAgain(log, winner, record.revision));
        if (winner === null) return record;
        throw new Overtaken(`somebody else changed one of ${kind.name} meanwhile: look at it, and ask again`);
      }),
  };
}

async function bringIn<R extends Change>(
  kind: RecordKind<R>,
  { view }: RecordPair<R>,
  { record, partition, offset }: Placed<R>,
): Promise<void> {
  try {
    // Where something else stands in between, the place stays, and the next look goes on from there.
    const moves = [{ partition, from: offset, to: offset + 1 }];
    await view.update({ changes: [{ record, partition, offset }], moves, completeIn: null });
  } catch (cause) {
    throw new ViewFault(`the log of ${kind.name} has the change and the view may not have it`, { cause });
  }
}

interface DecidedBy<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly log: RecordLog<R>;
  /** As they were before it was decided. */
  readonly bounds: readonly LogRange[];
}

/**
 * A turn may end while its owner is stopped, or be lost with the Redis that held it, and then somebody else has decided about
 * the same record. Theirs is in the log first, and may have been told as done: it wins.
 */
async function findWinner<R extends Change>(
  { kind, log, bounds }: DecidedBy<R>,
  { record, partition, offset }: Placed<R>,
): Promise<R | null> {
  const start = bounds.find((each) => each.partition === partition)?.end ?? 0;
  if (start >= offset) return null;
  const others = (await log.read({ partition, start, end: offset })).map((placed) => placed.record);
  const rivals = others.filter((other) => kind.idOf(other) === kind.idOf(record) && other.revision >= record.revision);
  return rivals.toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/** Behind the record that lost: compaction keeps the last one of an id. */
async function appendAgain<R extends Change>(log: RecordLog<R>, winner: R, lost: number): Promise<Placed<R>> {
  const record = { ...winner, revision: Math.max(winner.revision, lost) + 1 };
  return { record, ...(await log.append(record)) };
}

interface StampParts<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly records: readonly R[];
  readonly author: Author;
}

function stamp<R extends Change>(content: Content<R>, { kind, records, author }: StampParts<R>): R {
  const unnumbered = { ...content, ...author, revision: 1, changedAt: Date.now() } as unknown as R;
  const standing = records.find((record) => kind.idOf(record) === kind.idOf(unnumbered));
  return { ...unnumbered, revision: (standing?.revision ?? 0) + 1 };
}
