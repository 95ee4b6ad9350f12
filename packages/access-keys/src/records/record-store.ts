import { type ErrorDetails, PublicError } from '@playline/errors';
import type { Change, LogRange, ReceivedRecord, RecordKind, RecordLog } from './record-log.ts';
import { Overtaken, ViewFault } from './record-view.ts';
import { type RecordPair, syncFromLog, syncInTurn } from './sync-from-log.ts';

export type Author = Pick<Change, 'changedBy' | 'requestId'>;

/** A record without the metadata that the store adds. */
export type Content<R extends Change> = Omit<R, keyof Change>;

export interface RecordStore<R extends Change> {
  readonly author: Author;
  /** As in the log. */
  readAll(): Promise<readonly R[]>;
  /**
   * Makes one change at a time, across processes. `decide` returns the new content of one record, or null.
   * @throws what `decide` throws; ViewFault when the log has the change and the view may not; Overtaken when another
   * process has changed the record. Except for ViewFault, nothing was changed
   */
  change<C extends Content<R> | null>(decide: (records: readonly R[]) => C): Promise<C extends null ? null : R>;
}

/** The view is synced from the log before each decision. */
export function createRecordStore<R extends Change>(pair: RecordPair<R, RecordLog<R>>, author: Author): RecordStore<R> {
  const { view, log } = pair;
  const { kind } = view;
  const readView = async () => (await view.readSince(null)).records;
  return {
    author,
    readAll: async () => {
      await syncFromLog(pair);
      return readView();
    },
    change: (decide) =>
      view.exclusive(async () => {
        // Read before the sync: records after these ends may be missing from what the decision is based on.
        const bounds = await log.bounds();
        await syncInTurn(pair);
        const records = await readView();
        const content = decide(records);
        // The type of the result follows from that of `decide`.
        if (content === null) return null as never;
        const record = stamp(content, { kind, records, author });
        // The log first, so that the view can always be rebuilt from it.
        const received = { record, ...(await log.append(record)) };
        const winner = await findWinner({ kind, log, bounds }, received);
        await applyToView(pair, winner === null ? received : await appendAgain(log, winner, record.revision));
        if (winner === null) return record as never;
        throw new Overtaken(`another process has just changed one of ${kind.name}: check it and try again`);
      }),
  };
}

async function applyToView<R extends Change>(
  { view }: RecordPair<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<void> {
  // If other records lie between, the offset is not moved, and the next sync continues from it.
  const moves = [{ partition, from: offset, to: offset + 1 }];
  const update = () => view.update({ changes: [{ record, partition, offset }], moves, completeIn: null });
  try {
    // Retried immediately, because an ended key is valid until the view has the change.
    await update().catch(update);
  } catch (cause) {
    throw new ViewFault(`the log of ${view.kind.name} has the change, but the view may not have it`, { cause });
  }
}

interface DecidedBy<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly log: RecordLog<R>;
  /** From before the decision. */
  readonly bounds: readonly LogRange[];
}

/** A turn may be lost, and another process may have changed the record. Its change is first in the log, so it wins. */
async function findWinner<R extends Change>(
  { kind, log, bounds }: DecidedBy<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<R | null> {
  const start = bounds.find((each) => each.partition === partition)?.end ?? 0;
  if (start >= offset) return null;
  const others = (await log.read({ partition, start, end: offset })).map((received) => received.record);
  const rivals = others.filter((other) => kind.idOf(other) === kind.idOf(record) && other.revision >= record.revision);
  return rivals.toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/** Appended after the losing record, because compaction keeps the last record. */
async function appendAgain<R extends Change>(log: RecordLog<R>, winner: R, lost: number): Promise<ReceivedRecord<R>> {
  const record = { ...winner, revision: Math.max(winner.revision, lost) + 1 };
  return { record, ...(await log.append(record)) };
}

function stamp<R extends Change>(
  content: Content<R>,
  { kind, records, author }: { kind: RecordKind<R>; records: readonly R[]; author: Author },
): R {
  const unnumbered = { ...content, ...author, revision: 1, changedAt: Date.now() } as unknown as R;
  const present = records.find((record) => kind.idOf(record) === kind.idOf(unnumbered));
  return { ...unnumbered, revision: (present?.revision ?? 0) + 1 };
}

const NAME_CHARACTERS_MAX = 200;

/** Trims a name. @param of what it names, with its article. @throws PublicError VALIDATION_ERROR */
export function toName(name: string, of: string, details: ErrorDetails | null = null): string {
  const given = name.trim();
  if (given !== '' && given.length <= NAME_CHARACTERS_MAX) return given;
  const message = `The name of ${of} has 1 to ${NAME_CHARACTERS_MAX} characters.`;
  throw new PublicError('VALIDATION_ERROR', { message, details });
}
