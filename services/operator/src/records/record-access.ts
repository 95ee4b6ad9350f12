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
import { EXIT, type ExitCode, type Terminal, UnreachableError } from '../command.ts';

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

/** The result for one view. */
interface RebuildResult {
  readonly line: object;
  readonly text: string;
}

/**
 * Makes every view of access records equal to its log. A failure does not affect the other views.
 * @returns 1 when one has failed
 * @throws UnreachableError when no required store answered
 */
export async function rebuildViews(
  kinds: readonly RecordSources<Change>[],
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): Promise<ExitCode> {
  const ended = await Promise.allSettled(kinds.map(rebuildKind));
  const faults = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  // One message is enough when a store is away, since that affects all views.
  if (faults.length === kinds.length && faults.every((fault) => fault instanceof UnreachableError)) throw faults[0];
  for (const [at, end] of ended.entries()) {
    if (end.status === 'fulfilled') terminal.result(json ? JSON.stringify(end.value.line) : end.value.text);
    else terminal.progress(`keys: ${kinds[at]?.kind.name} were not rebuilt: ${toSentence(end.reason)}`);
  }
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}

async function rebuildKind(sources: RecordSources<Change>): Promise<RebuildResult> {
  const { name } = sources.kind;
  const { records, removed } = await withPair(sources, (pair) => rebuildRecords(pair));
  const text = `${name.replaceAll('-', ' ')}: ${records.length} records in the log; ${removed} removed from Redis that the log does not have`;
  return { line: { kind: name, records: records.length, removed }, text };
}

const toSentence = (fault: unknown) => redactSecrets(fault instanceof Error ? fault.message : String(fault));

/** The operating-system account of this process, and one request id for all its changes. */
export function createAuthor(): Author {
  return { changedBy: accountName(), requestId: randomUUID() };
}

/** In a container the user id may have no account. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
