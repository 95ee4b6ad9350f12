import { catchUpInTurn, catchUpRecords, type RecordPair } from './level.ts';
import type { Change, RecordKind, RecordLog } from './record-log.ts';
import { ViewFault } from './view-faults.ts';

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
   * @throws what `decide` throws, and then nothing was changed; ViewFault when the log has the change and the view may not
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
        await catchUpInTurn(pair);
        const records = await readView();
        const content = decide(records);
        if (content === null) return null;
        const record = stamp(content, { kind, records, author });
        // The guarantee: whoever sees a change in the view finds it in the log, so the log can always give the view back.
        const { partition, offset } = await log.append(record);
        try {
          // Where somebody who waited for no turn stands in between, the place stays, and the next look goes on from there.
          const moves = [{ partition, from: offset, to: offset + 1 }];
          await view.update({ changes: [{ record, partition, offset }], moves, completeIn: null });
        } catch (cause) {
          throw new ViewFault(`the log of ${kind.name} has the change and the view may not have it`, { cause });
        }
        return record;
      }),
  };
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
