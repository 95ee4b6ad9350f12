import { type ClickHouseAccount, pauseOrThrow, quoteText } from '@playline/stores';
import { awaitStore } from '../await-store.ts';
import { createEngine, type Engine } from '../columns/engine.ts';
import {
  columnOf,
  describeColumn,
  type PropertyColumn,
  parseColumn,
  parseName,
  toAddStatement,
} from '../columns/property-column.ts';
import { type MonthOfParts, readMonths, readStanding, type StandingColumn, sumMonths } from '../columns/standing.ts';
import { findNaming, hideFromViews, refreshViews } from '../columns/views.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  isMeant,
  parseOptions,
  type Terminal,
  type Values,
  wordOf,
} from '../command.ts';
import { createProgress } from '../progress.ts';
import { toTable } from '../table.ts';

export interface ColumnsContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly wallClockMs: () => number;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

const HELP = `usage: operator columns add   --name N --path P --type T [--default V]
       operator columns list  [--json]
       operator columns drop  --name N [--yes]          (npm run columns -- list)

A property of events as a column of its own: read by its name and type, filtered without reading JSON.

add   adds column property_N to events, shows it in the views, and fills the rows that stand. Rows that come get it at
      their insert. While standing rows are being filled it is worked out as they are read: answers are right from the
      first moment. May run beside everything else, and be ended and begun again: the same again goes on. One of the name
      that is of another path, type or default is refused. Whoever may read analysis_events sees it, also who may not read
      raw ids: make no column of a property that names somebody
list  every such column: path, type, default, since when, parts still to be filled, bytes on disk
drop  takes it from the views, then from the table; asks first. The properties themselves stay

  --name coins            small letters, digits and _, of which it makes property_coins
  --path economy.coins    where it stands in the properties; a dot of a name is \\. and a backslash \\\\
  --type                  Int64, Float64, String, LowCardinality(String) for a text with up to some ten thousand different
                          values, Bool, or DateTime for a text such as 2026-01-02T03:04:05Z, which is kept in milliseconds
  --default=0             what stands where the property is absent or of another kind; NULL without it
  --yes                   drop: without asking        --json   list: one line of JSON each

Needs CLICKHOUSE_URL with the account of operators, or a stack that runs here (.playline/stack.json).

Exit code: 0 done, 1 it failed, stands as another or is not there, or you said no, 2 wrong words, 3 ClickHouse does not
answer.`;

const text = { type: 'string' } as const;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  readonly act: (work: ColumnsWork) => Promise<ExitCode>;
  /** Checks the arguments before any request. @throws UsageError */
  readonly check: (values: ColumnsWork['values']) => void;
}

const WORDS: Readonly<Record<string, Word>> = {
  add: { options: { name: text, path: text, type: text, default: text }, act: add, check: parseColumn },
  list: { options: { json: { type: 'boolean', default: false } }, act: list, check: () => {} },
  drop: { options: { name: text, yes: { type: 'boolean', default: false } }, act: drop, check: parseName },
};

export function createColumnsCommand({ clickhouse, wallClockMs, stop }: ColumnsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values } = parseOptions(rest, word.options);
    word.check(values);
    const engine = createEngine(clickhouse());
    await awaitStore('ClickHouse', async () => (await engine.read('SELECT 1')).length === 1);
    try {
      return await word.act({ engine, values, terminal, wallClockMs, signal: stop });
    } catch (fault) {
      if (!stop.aborted) throw fault;
      terminal.progress('ended before it was done: nothing is half done, say the same again');
      return EXIT.failed;
    }
  };
  return { name: 'columns', summary: 'properties of events as columns: add, list, drop', help: HELP, run };
}

/** Each column costs every insert half a microsecond a row. */
export const COLUMNS_MAX = 50;

type Asked = Omit<PropertyColumn, 'since'>;

/** Adds the column, shows it in the views, and fills stored rows. Running it again continues unfinished work. */
async function add(work: ColumnsWork): Promise<ExitCode> {
  const { engine, values, terminal, signal } = work;
  const asked = parseColumn(values);
  const column = columnOf(asked.name);
  if (await isStanding(engine, asked)) terminal.progress(`${column} stands already: what is not done of it goes on`);
  else await addColumn(work, asked);
  const { changed, broken } = await refreshViews(engine);
  if (changed.length > 0) terminal.progress(`whoever may read these views sees it: ${changed.join(', ')}`);
  for (const name of broken) terminal.progress(`view ${name} fails by itself, and was left as it is`);
  await backfill({ engine, column, progress: createProgress(terminal), signal });
  terminal.result(`${column}: ${describeColumn(asked)}; every part has it`);
  return EXIT.ok;
}

async function addColumn({ engine, wallClockMs, signal }: ColumnsWork, asked: Asked): Promise<void> {
  // Waits for the drop of a column with this name: its parts would count as filled.
  await awaitNone(engine, isOf('DROP', columnOf(asked.name)), { onLook: () => {}, signal });
  try {
    await engine.run(toAddStatement({ ...asked, since: new Date(wallClockMs()).toISOString() }));
  } catch (fault) {
    // Another command may have added it meanwhile.
    if (!(await isStanding(engine, asked))) throw fault;
  }
}

/** @throws Error when another column has the name, or there are as many columns as allowed */
async function isStanding(engine: Engine, asked: Asked): Promise<boolean> {
  const standing = await readStanding(engine);
  const found = standing.find(({ name }) => name === asked.name);
  if (found === undefined && standing.length >= COLUMNS_MAX)
    throw new Error(`there are ${COLUMNS_MAX} property columns already: drop one that nobody asks about first`);
  if (found === undefined) return false;
  if (found.column !== null && describeColumn(found.column) === describeColumn(asked)) return true;
  throw new Error(
    `${columnOf(asked.name)} stands already, and is ${toWords(found)}: take another name, or drop that one first`,
  );
}

const toWords = ({ column, type }: StandingColumn) =>
  column === null ? `${type}, added by other means` : describeColumn(column);

interface BackfillContext {
  readonly engine: Engine;
  /** Name of the column, with its prefix. */
  readonly column: string;
  readonly progress: (line: string) => void;
  /** Ends the wait; the month that is being written is finished by the engine. */
  readonly signal: AbortSignal;
}

/** A month is repeated when an old insert adds a part to it, but not for ever. */
const TURNS_MAX = 5;

/**
 * Writes the column into every part that lacks it, one month at a time, the newest first: a deletion then waits for one
 * month only. The parts themselves show what is left, so it may be interrupted, repeated and run in parallel.
 * @throws Error when the engine cannot write a part; the change is cancelled, since later ones would wait behind it
 */
async function backfill(context: BackfillContext): Promise<void> {
  const turns = new Map<string, number>();
  for (;;) {
    await passOthers(context);
    const months = await readMonths(context.engine, context.column);
    const next = months.find(({ toDo }) => toDo > 0);
    if (next === undefined) return;
    const turn = (turns.get(next.month) ?? 0) + 1;
    if (turn > TURNS_MAX)
      throw new Error(`month ${next.month} was written ${TURNS_MAX} times and still lacks the column`);
    turns.set(next.month, turn);
    await writeMonth(context, months, next);
  }
}

/** Waits for changes of other kinds, such as deletions; those of a killed backfill of this column are continued. */
async function passOthers({ engine, column, progress, signal }: BackfillContext): Promise<void> {
  const isOwn = isOf('MATERIALIZE', column);
  const onLook = async (left: readonly Unfinished[]) => {
    await takeBackFailed(engine, left.filter(isOwn));
    const failing = left.find(({ fault }) => fault !== '');
    const words = failing === undefined ? '' : `; ${failing.id} fails with ${failing.fault}`;
    progress(`backfill: waits for ${left.length} other change(s) of events to end${words}`);
  };
  await awaitNone(engine, () => true, { onLook, signal });
}

async function writeMonth(
  { engine, column, progress, signal }: BackfillContext,
  months: readonly MonthOfParts[],
  next: MonthOfParts,
): Promise<void> {
  progress(toLine(months, next.month));
  await engine.run(
    `ALTER TABLE events MATERIALIZE COLUMN ${column} IN PARTITION ID '${next.month}' SETTINGS mutations_sync = 0`,
  );
  const onLook = async (left: readonly Unfinished[]) => {
    await takeBackFailed(engine, left);
    progress(toLine(await readMonths(engine, column), next.month));
  };
  await awaitNone(engine, isOf('MATERIALIZE', column), { onLook, signal });
}

function toLine(months: readonly MonthOfParts[], month: string): string {
  const { parts, toDo } = sumMonths(months);
  return `backfill: ${parts - toDo} of ${parts} parts have the column; writing ${month}`;
}

async function takeBackFailed(engine: Engine, own: readonly Unfinished[]): Promise<void> {
  const failed = own.find(({ fault }) => fault !== '');
  if (failed === undefined) return;
  await kill(engine, own);
  throw new Error(
    `the backfill failed with ${failed.fault}: answers are right all the same, only slower; mend it and say the same again`,
  );
}

/** Removes the column from the views, then from the table, and waits until no file has it. */
async function drop(work: ColumnsWork): Promise<ExitCode> {
  const { engine, values, terminal, signal } = work;
  const column = columnOf(parseName(values));
  const isThere = await stands(engine, column);
  const isGoing = (await readUnfinished(engine)).some(isOf('DROP', column));
  if (!isThere && !isGoing) throw new Error(`there is no ${column}: npm run columns -- list names those that are`);
  if (isThere && !(await isMeant(`This drops ${column}; the properties themselves stay.`, values, terminal))) {
    terminal.progress('nothing was dropped');
    return EXIT.failed;
  }
  if (isThere) await dropColumn(engine, column);
  const progress = createProgress(terminal);
  const onLook = () => progress(`${column} is gone; files that have it are being written without it`);
  await awaitNone(engine, isOf('DROP', column), { onLook, signal });
  terminal.result(`${column} is dropped`);
  return EXIT.ok;
}

const stands = async (engine: Engine, column: string) =>
  (await readStanding(engine)).some(({ name }) => columnOf(name) === column);

async function dropColumn(engine: Engine, column: string): Promise<void> {
  const naming = await findNaming(engine, column);
  if (naming.length > 0)
    throw new Error(`${column} is named by ${naming.join(', ')}: change or drop that first, it would fail without it`);
  await hideFromViews(engine, column);
  try {
    // The engine drops no column while it is being filled.
    await kill(engine, (await readUnfinished(engine)).filter(isOf('MATERIALIZE', column)));
    await engine.run(`ALTER TABLE events DROP COLUMN ${column} SETTINGS alter_sync = 0, mutations_sync = 0`);
  } catch (fault) {
    // The column still exists, so views show it again.
    await refreshViews(engine);
    throw fault;
  }
}

/** Prints each property column and how far its backfill has come. */
async function list({ engine, values, terminal }: ColumnsWork): Promise<ExitCode> {
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

/** What an action of the command works with. */
interface ColumnsWork {
  readonly engine: Engine;
  readonly values: Values;
  readonly terminal: Terminal;
  readonly wallClockMs: () => number;
  readonly signal: AbortSignal;
}

/** A change of the rows of `events` that the engine has not finished. */
interface Unfinished {
  readonly id: string;
  readonly command: string;
  /** The name of the engine's fault; empty without one. The message is left out, since it may contain a value. */
  readonly fault: string;
}

const POLL_MIN_MS = 20;
const POLL_MAX_MS = 1_000;

async function readUnfinished(engine: Engine): Promise<Unfinished[]> {
  const rows = await engine.read(`SELECT mutation_id, command, latest_fail_reason FROM system.mutations
    WHERE database = currentDatabase() AND table = 'events' AND NOT is_done AND NOT is_killed ORDER BY create_time`);
  return rows.map(([id, command, reason]) => ({
    id: String(id),
    command: String(command),
    fault: reason === '' ? '' : (/\(([A-Z0-9_]+)\)/.exec(String(reason))?.[1] ?? 'UNKNOWN'),
  }));
}

/** Whether a change is about this column. @param column with its prefix */
const isOf = (word: 'MATERIALIZE' | 'DROP', column: string) => {
  const pattern = new RegExp(`\\b${word} COLUMN \`?${column}\\b`);
  return ({ command }: Unfinished): boolean => pattern.test(command);
};

async function kill(engine: Engine, mutations: readonly Unfinished[]): Promise<void> {
  if (mutations.length === 0) return;
  const ids = mutations.map(({ id }) => quoteText(id)).join(', ');
  await engine.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = 'events' AND mutation_id IN (${ids}) SYNC`,
  );
}

interface Wait {
  /** Called at every look with the unfinished changes. */
  readonly onLook: (waitedFor: readonly Unfinished[]) => void | Promise<void>;
  /** Ends the wait; the changes go on. */
  readonly signal: AbortSignal;
}

/** Waits until no such change is left. @throws the reason of the signal */
async function awaitNone(
  engine: Engine,
  isWaitedFor: (mutation: Unfinished) => boolean,
  { onLook, signal }: Wait,
): Promise<void> {
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    signal.throwIfAborted();
    const left = (await readUnfinished(engine)).filter(isWaitedFor);
    if (left.length === 0) return;
    await onLook(left);
    await pauseOrThrow(pauseMs, signal);
  }
}
