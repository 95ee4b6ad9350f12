import { type Change, rebuildRecords } from '@playline/access-keys';
import { redactSecrets } from '@playline/runtime';
import { EXIT, type ExitCode, type Terminal, UnreachableError } from '../command.ts';
import { type KeySources, rebuildView } from '../keys/key-access.ts';
import { type RecordSources, withPair } from './record-access.ts';

/** All access records that a rebuild restores. */
export interface RebuiltSources {
  readonly keys: KeySources;
  /** All kinds of records. */
  readonly kinds: readonly RecordSources<Change>[];
}

/** The result for one view. */
interface Done {
  readonly line: object;
  readonly text: string;
}

/**
 * Makes every view of access records equal to its log. A failure does not affect the other views.
 * @returns 1 when one has failed
 * @throws UnreachableError when no required store answered
 */
export async function rebuildViews(
  { keys, kinds }: RebuiltSources,
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): Promise<ExitCode> {
  const parts = [
    { name: 'keys', rebuild: () => rebuildKeyView(keys) },
    ...kinds.map((sources) => ({ name: sources.kind.name, rebuild: () => rebuildKind(sources) })),
  ];
  const ended = await Promise.allSettled(parts.map(({ rebuild }) => rebuild()));
  const faults = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  // One message is enough when a store is away, since that affects all views.
  if (faults.length === parts.length && faults.every((fault) => fault instanceof UnreachableError)) throw faults[0];
  for (const [at, end] of ended.entries()) {
    if (end.status === 'fulfilled') terminal.result(json ? JSON.stringify(end.value.line) : end.value.text);
    else terminal.progress(`keys: ${parts[at]?.name} were not rebuilt: ${toSentence(end.reason)}`);
  }
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}

async function rebuildKeyView(sources: KeySources): Promise<Done> {
  const line = await rebuildView(sources);
  const { keys, live, removed, ended } = line;
  const others = `${removed} that the log does not know removed, ${ended} superfluous ended`;
  return { line, text: `${keys} keys in the log, ${live} of them live; ${others}` };
}

async function rebuildKind(sources: RecordSources<Change>): Promise<Done> {
  const { name } = sources.kind;
  const { records, removed } = await withPair(sources, (pair) => rebuildRecords(sources.kind, pair));
  const text = `${records.length} ${name.replaceAll('-', ' ')} in the log; ${removed} that the log does not know removed`;
  return { line: { kind: name, records: records.length, removed }, text };
}

const toSentence = (fault: unknown) => redactSecrets(fault instanceof Error ? fault.message : String(fault));
