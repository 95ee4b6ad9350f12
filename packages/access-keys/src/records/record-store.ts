import { type ErrorDetails, PublicError } from '@playline/errors';
import type { Change, LogRange, ReceivedRecord, RecordKind, RecordLog } from './record-log.ts';
import { Overtaken, ViewFault } from './record-view.ts';
import { type RecordPair, syncFromLog, syncInTurn } from './sync-from-log.ts';

/** Who changes something, and with what request. */
export type Author = Pick<Change, 'changedBy' | 'requestId'>;

/** A record without what the store itself adds about the change. */
export type Content<R extends Change> = Omit<R, keyof Change>;

/** One kind of records, for changes. */
export interface RecordStore<R extends Change> {
  /** Of every change that this store makes. */
  readonly author: Author;
  /** All of them, as the log has them. */
  readAll(): Promise<readonly R[]>;
  /**
   * Makes one change. `decide` gets all records and returns what one of them shall be; null changes nothing. Changes
   * take turns, across all processes.
   * @throws what `decide` throws: then nothing was changed; ViewFault when the log has the change and the view may not;
   * Overtaken when another process changed the same record meanwhile
   */
  change(decide: (records: readonly R[]) => Content<R> | null): Promise<R | null>;
}

/**
 * Creates a store that writes each change to the log before the view. Before it decides, it applies to the view what the
 * log has and the view lacks, so it never decides by half a change.
 */
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
        if (content === null) return null;
        const record = stamp(content, { kind, records, author });
        // The guarantee: every change that the view shows is in the log, so the view can always be rebuilt from it.
        const placed = { record, ...(await log.append(record)) };
        const winner = await findWinner({ kind, log, bounds }, placed);
        await applyToView(pair, winner === null ? placed : await appendAgain(log, winner, record.revision));
        if (winner === null) return record;
        throw new Overtaken(`another process changed one of ${kind.name} at the same moment: check it and try again`);
      }),
  };
}

async function applyToView<R extends Change>(
  { view }: RecordPair<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<void> {
  // If other records lie in between, the offset is not moved, and the next sync continues from it.
  const moves = [{ partition, from: offset, to: offset + 1 }];
  const update = () => view.update({ changes: [{ record, partition, offset }], moves, completeIn: null });
  try {
    // Tried again at once, because an ended key is valid until the view has the change.
    await update().catch(update);
  } catch (cause) {
    throw new ViewFault(`the log of ${view.kind.name} has the change and the view may not have it`, { cause });
  }
}

interface DecidedBy<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly log: RecordLog<R>;
  /** As they were before it was decided. */
  readonly bounds: readonly LogRange[];
}

/**
 * A turn may end while its process is suspended, or be lost together with Redis. Another process may then have decided
 * about the same record. Its change is in the log first and may have been confirmed to its caller, so it wins.
 */
async function findWinner<R extends Change>(
  { kind, log, bounds }: DecidedBy<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<R | null> {
  const start = bounds.find((each) => each.partition === partition)?.end ?? 0;
  if (start >= offset) return null;
  const others = (await log.read({ partition, start, end: offset })).map((placed) => placed.record);
  const rivals = others.filter((other) => kind.idOf(other) === kind.idOf(record) && other.revision >= record.revision);
  return rivals.toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/** Written after the losing record, because compaction keeps the last record of an id. */
async function appendAgain<R extends Change>(log: RecordLog<R>, winner: R, lost: number): Promise<ReceivedRecord<R>> {
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
  const present = records.find((record) => kind.idOf(record) === kind.idOf(unnumbered));
  return { ...unnumbered, revision: (present?.revision ?? 0) + 1 };
}

/** The record that a change has made. @param record returned by `RecordStore.change` */
export function toDone<R>(record: R | null): R {
  if (record === null) throw new Error('nothing was changed');
  return record;
}

const NAME_CHARACTERS_MAX = 200;

/**
 * A name of a project, a collection or a signable key, without spaces around it.
 * @param of what it names, with its article
 * @throws PublicError VALIDATION_ERROR
 */
export function toName(name: string, of: string, details: ErrorDetails | null = null): string {
  const given = name.trim();
  if (given !== '' && given.length <= NAME_CHARACTERS_MAX) return given;
  const message = `The name of ${of} has 1 to ${NAME_CHARACTERS_MAX} characters.`;
  throw new PublicError('VALIDATION_ERROR', { message, details });
}
