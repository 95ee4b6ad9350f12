import { toCsvLine } from '../../frame/csv.ts';
import type { AuditLine } from '../../reads/index.ts';

const COLUMNS = [...(['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'] as const)];

/** Entries with a line of names in front, a piece of the file for each list. @param nameOf what an actor is called */
export async function* toAuditCsv(
  lists: AsyncIterable<readonly AuditLine[]>,
  nameOf: (actor: string) => string,
): AsyncGenerator<string> {
  let text = toCsvLine(COLUMNS);
  for await (const lines of lists) {
    for (const line of lines) text += toCsvLine(toCells(line, nameOf));
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

const toCells = (line: AuditLine, nameOf: (actor: string) => string): readonly string[] => [
  ...[new Date(line.happenedMs).toISOString(), line.action, line.object, nameOf(line.actor), line.environmentId],
  ...[line.address, line.requestId, line.detail],
];
