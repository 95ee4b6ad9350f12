import {
  type Author,
  type Change,
  createRecordStore,
  IncompleteViewFault,
  type RecordKind,
  type RecordLog,
  type RecordPair,
  type RecordStore,
  type RecordView,
  ViewFault,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import { UnreachableError } from '../command.ts';

/** Opens the live view of one kind of records and their log. */
export interface RecordSources<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly author: Author;
  openView(): Promise<RecordView<R> & { ready(): Promise<boolean>; close(): Promise<void> }>;
  openLog(): Promise<RecordLog<R> & { close(): Promise<void> }>;
}

/**
 * Reads or changes records: in the log first, then in the view. Unfinished changes of a command that died are completed
 * before anything is decided.
 * @throws UnreachableError when a store does not answer, also half-way; its message says how to continue
 */
export function withRecords<R extends Change, T>(
  sources: RecordSources<R>,
  work: (store: RecordStore<R>) => Promise<T>,
): Promise<T> {
  const { kind, author } = sources;
  return withPair(sources, async (pair) => {
    try {
      return await work(createRecordStore(pair, author));
    } catch (fault) {
      if (!(fault instanceof ViewFault)) throw fault;
      throw new UnreachableError(
        `${fault.message}: the next command about ${kind.name} applies it, and gateways do so within seconds`,
      );
    }
  });
}

/** Opens both, once both answer. */
export async function withPair<R extends Change, T>(
  sources: RecordSources<R>,
  work: (pair: RecordPair<R, RecordLog<R>>) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await sources.openView(), async (view) => {
    const log = await sources.openLog();
    return work({ view, log }).finally(() => log.close());
  });
}

/** Reads records from Redis alone, so that they can be shown without brokers; from the log if Redis has lost some. */
export async function readRecords<R extends Change>(sources: RecordSources<R>): Promise<readonly R[]> {
  const found = await withStore('Redis', await sources.openView(), (view) =>
    view.readSince(null).catch((fault: unknown) => {
      if (fault instanceof IncompleteViewFault) return null;
      throw fault;
    }),
  );
  return found?.records ?? withRecords(sources, (store) => store.readAll());
}
