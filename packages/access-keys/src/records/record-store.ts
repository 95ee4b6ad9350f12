import { type ErrorDetails, PublicError } from '@playline/errors';
import type { Change, LogRange, ReceivedRecord, RecordKind, RecordLog } from './record-log.ts';
import { ConcurrentChange, ViewFault } from './record-view.ts';
import { type RecordPair, syncExclusively, syncFromLog } from './sync-from-log.ts';

export type Author = Pick<Change, 'changedBy' | 'requestId'>;

/** A record's content, without the metadata that the store adds. */
export type Content<R extends Change> = Omit<R, keyof Change>;

export interface RecordStore<R extends Change> {
  readonly author: Author;
  /** Syncs the view and returns all records. */
  readAll(): Promise<readonly R[]>;
  /**
   * Makes one change at a time across all processes. `decide` returns one record's new content, or null for no change.
   * @throws any error of `decide`; ViewFault if the change is in the log but possibly not in the view;
   * ConcurrentChange if another process has changed the record. Only after ViewFault may anything have changed
   */
  change<C extends Content<R> | null>(decide: (records: readonly R[]) => C): Promise<C extends null ? null : R>;
}

/** Creates a store that syncs the view from the log before each decision. */
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
        // Read the bounds before the sync: the decision may not have seen any record beyond them.
        const bounds = await log.bounds();
        await syncExclusively(pair);
        const records = await readView();
        const content = decide(records);
        // TypeScript cannot narrow the result type, which depends on `decide`.
        if (content === null) return null as never;
        const record = addMetadata(content, { kind, records, author });
        // Write the log first, so that the view can always be rebuilt from the log.
        const received = { record, ...(await log.append(record)) };
        const winner = await findWinner({ kind, log, bounds }, received);
        await applyToView(pair, winner === null ? received : await appendAgain(log, winner, record.revision));
        if (winner === null) return record as never;
        throw new ConcurrentChange(`another process has just changed one of the ${kind.name}: reload and try again`);
      }),
  };
}

async function applyToView<R extends Change>(
  { view }: RecordPair<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<void> {
  // If earlier records have not been applied, the applied offset does not change, and the next sync starts there.
  const moves = [{ partition, from: offset, to: offset + 1 }];
  const update = () => view.update({ changes: [{ record, partition, offset }], moves, completeIn: null });
  try {
    // Retry immediately, because a revoked key stays valid until the view is updated.
    await update().catch(update);
  } catch (cause) {
    throw new ViewFault(`the change is in the ${view.kind.name} log, but the view may not have it`, { cause });
  }
}

interface DecisionContext<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly log: RecordLog<R>;
  /** Log bounds from before the decision. */
  readonly bounds: readonly LogRange[];
}

/** If this process lost its lock, another process may have changed the record. The earlier change in the log wins. */
async function findWinner<R extends Change>(
  { kind, log, bounds }: DecisionContext<R>,
  { record, partition, offset }: ReceivedRecord<R>,
): Promise<R | null> {
  const start = bounds.find((each) => each.partition === partition)?.end ?? 0;
  if (start >= offset) return null;
  const intervening = (await log.read({ partition, start, end: offset })).map((received) => received.record);
  const competing = intervening.filter(
    (each) => kind.idOf(each) === kind.idOf(record) && each.revision >= record.revision,
  );
  return competing.toSorted((a, b) => a.revision - b.revision).at(-1) ?? null;
}

/** Appends the winner again after the losing record, because compaction retains the last record. */
async function appendAgain<R extends Change>(log: RecordLog<R>, winner: R, losing: number): Promise<ReceivedRecord<R>> {
  const record = { ...winner, revision: Math.max(winner.revision, losing) + 1 };
  return { record, ...(await log.append(record)) };
}

function addMetadata<R extends Change>(
  content: Content<R>,
  { kind, records, author }: { kind: RecordKind<R>; records: readonly R[]; author: Author },
): R {
  const stamped = { ...content, ...author, revision: 1, changedAt: Date.now() } as unknown as R;
  const current = records.find((record) => kind.idOf(record) === kind.idOf(stamped));
  return { ...stamped, revision: (current?.revision ?? 0) + 1 };
}

const NAME_CHARACTERS_MAX = 200;

/** Trims a name. @param owner what the name belongs to, with an article. @throws PublicError VALIDATION_ERROR */
export function toName(name: string, owner: string, details: ErrorDetails | null = null): string {
  const trimmed = name.trim();
  if (trimmed !== '' && trimmed.length <= NAME_CHARACTERS_MAX) return trimmed;
  const message = `The name of ${owner} must have 1 to ${NAME_CHARACTERS_MAX} characters.`;
  throw new PublicError('VALIDATION_ERROR', { message, details });
}
