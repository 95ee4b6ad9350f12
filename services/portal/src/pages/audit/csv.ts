import { toCsv } from '../../frame/csv.ts';
import type { AuditLine } from '../../reads/index.ts';

const COLUMNS = ['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'];

/** Entries, a piece of the file for each list. @param nameOf what an actor is called */
export function toAuditCsv(
  lists: AsyncIterable<readonly AuditLine[]>,
  nameOf: (actor: string) => string,
): AsyncGenerator<string> {
  return toCsv(lists, { columns: COLUMNS, toCells: (line) => toCells(line, nameOf) });
}

const toCells = (line: AuditLine, nameOf: (actor: string) => string): readonly string[] => [
  ...[new Date(line.happenedMs).toISOString(), line.action, line.object, nameOf(line.actor), line.environmentId],
  ...[line.address, line.requestId, line.detail],
];
