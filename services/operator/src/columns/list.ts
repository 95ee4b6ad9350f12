import { EXIT, type ExitCode } from '../command.ts';
import { toTable } from '../table.ts';
import { columnOf } from './property-column.ts';
import { readMonths, readStanding, type StandingColumn, sumMonths } from './standing.ts';
import type { ColumnsWork } from './work.ts';

/** Prints each property column and how far its backfill has come. */
export async function list({ engine, values, terminal }: ColumnsWork): Promise<ExitCode> {
  const rows = [];
  for (const standing of await readStanding(engine))
    rows.push(toRow(standing, sumMonths(await readMonths(engine, columnOf(standing.name)))));
  if (values.json === true) for (const row of rows) terminal.result(JSON.stringify(row));
  else if (rows.length === 0) terminal.progress('no property has a column');
  else for (const line of toTable(HEAD, rows.map(toCells))) terminal.result(line);
  return EXIT.ok;
}

type Row = ReturnType<typeof toRow>;

function toRow({ name, type, column }: StandingColumn, { parts, toDo, bytes, untold }: ReturnType<typeof sumMonths>) {
  return {
    name,
    column: columnOf(name),
    path: column?.path ?? null,
    type: column?.type ?? type,
    default: column?.fallback ?? null,
    since: column?.since ?? null,
    parts,
    partsToDo: toDo,
    bytesOnDisk: bytes,
    partsWithoutBytes: untold,
  };
}

const HEAD = ['column', 'path', 'type', 'default', 'since', 'backfill', 'on disk'];

function toCells(row: Row): string[] {
  const backfill = row.partsToDo === 0 ? 'done' : `${row.partsToDo} of ${row.parts} parts to do`;
  const untold = row.partsWithoutBytes === 0 ? '' : ` and ${row.partsWithoutBytes} small parts`;
  return [
    ...[row.column, row.path ?? '(added by other means)', row.type],
    ...[row.default === null ? 'NULL' : JSON.stringify(row.default), row.since ?? '-', backfill],
    `${row.bytesOnDisk} bytes${untold}`,
  ];
}
