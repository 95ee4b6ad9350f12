import { type Change, rebuildRecords } from '@playline/access-keys';
import { redactSecrets } from '@playline/runtime';
import { EXIT, type ExitCode, type Terminal, UnreachableError } from '../command.ts';
import { type RecordSources, withPair } from './record-access.ts';

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

async function rebuildKind(sources: RecordSources<Change>): Promise<Done> {
  const { name } = sources.kind;
  const { records, removed } = await withPair(sources, (pair) => rebuildRecords(pair));
  const text = `${name.replaceAll('-', ' ')}: ${records.length} records in the log; ${removed} removed from Redis that the log does not have`;
  return { line: { kind: name, records: records.length, removed }, text };
}

const toSentence = (fault: unknown) => redactSecrets(fault instanceof Error ? fault.message : String(fault));
