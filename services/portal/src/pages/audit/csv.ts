import type { AuditLine } from '../../reads/index.ts';

const COLUMNS = [...(['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'] as const)];

/** What a sheet would take for a formula stands behind an apostrophe: objects and details hold words of anybody. */
const FORMULA = /^[=+\-@\t\r]/;

function toCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** Entries as RFC 4180 has it, with a line of names. @param nameOf what an actor is called */
export function toCsv(lines: readonly AuditLine[], nameOf: (actor: string) => string): string {
  const rows = lines.map((line) => [
    ...[new Date(line.happenedMs).toISOString(), line.action, line.object, nameOf(line.actor), line.environmentId],
    ...[line.address, line.requestId, line.detail],
  ]);
  return [COLUMNS, ...rows].map((row) => `${row.map(toCell).join(',')}\r\n`).join('');
}
