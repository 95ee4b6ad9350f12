import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
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
  rebuildRecords,
  ViewFault,
} from '@playline/access-keys';
import { redactSecrets } from '@playline/runtime';
import { withStore } from '../await-store.ts';
import { EXIT, type JsonOption, printResult, type Terminal, UnreachableError } from '../command.ts';

/** Opens the Redis view and the log of one record kind. */
export interface RecordSources<R extends Change> {
  readonly kind: RecordKind<R>;
  readonly author: Author;
  openView(): Promise<RecordView<R> & { ready(): Promise<boolean>; close(): Promise<void> }>;
  openLog(): Promise<RecordLog<R> & { close(): Promise<void> }>;
}

/**
 * Runs `work` with a record store, which writes changes to the log and then to the view, and completes unfinished
 * changes.
 * @throws UnreachableError when a store does not respond
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
      throw new UnreachableError(`${fault.message}: gateways or the next ${kind.name} command will apply the change`);
    }
  });
}

export async function withPair<R extends Change, T>(
  sources: RecordSources<R>,
  work: (pair: RecordPair<R, RecordLog<R>>) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await sources.openView(), async (view) => {
    const log = await sources.openLog();
    return work({ view, log }).finally(() => log.close());
  });
}

/** Reads records from Redis without using the brokers, or from the log if Redis has lost records. */
export async function readRecords<R extends Change>(sources: RecordSources<R>): Promise<readonly R[]> {
  const found = await withStore('Redis', await sources.openView(), (view) =>
    view.readSince(null).catch((fault: unknown) => {
      if (fault instanceof IncompleteViewFault) return null;
      throw fault;
    }),
  );
  return found?.records ?? withRecords(sources, (store) => store.readAll());
}

/**
 * Restores the views of all record kinds from their logs. A failure does not affect other kinds.
 * @returns exit code 1 after a failure
 * @throws UnreachableError when no store responds
 */
export async function rebuildViews(kinds: readonly RecordSources<Change>[], options: JsonOption, terminal: Terminal) {
  const ended = await Promise.allSettled(kinds.map((kind) => withPair(kind, (pair) => rebuildRecords(pair))));
  const faults = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  // If a store is unavailable, all kinds fail with the same error.
  if (faults.length === kinds.length && faults.every((fault) => fault instanceof UnreachableError)) throw faults[0];
  for (const [index, end] of ended.entries()) {
    const name = `${kinds[index]?.kind.name}`;
    if (end.status === 'fulfilled') {
      const { records, removed } = end.value;
      const text = `${name.replaceAll('-', ' ')}: records restored from the log: ${records.length}, unlogged records removed from Redis: ${removed}`;
      printResult(terminal, options, { kind: name, records: records.length, removed }, text);
    } else terminal.progress(`keys: ${name} were not rebuilt: ${toSentence(end.reason)}`);
  }
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}

const toSentence = (fault: unknown) => redactSecrets(fault instanceof Error ? fault.message : String(fault));

/** Returns the operating-system account and a request id for all changes of this process. */
export function createAuthor(): Author {
  return { changedBy: accountName(), requestId: randomUUID() };
}

/** In a container, the user id may not have an account name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
