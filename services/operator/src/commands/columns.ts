import { Option } from '@commander-js/extra-typings';
import { type ClickHouseAccount, pauseOrThrow, quoteText } from '@playline/stores';
import { awaitStore } from '../await-store.ts';
import {
  columnOf,
  describeColumn,
  type PropertyColumn,
  parseColumn,
  parseName,
  parsePath,
  TYPE_NAMES,
  toAddStatement,
} from '../columns/property-column.ts';
import {
  createEngine,
  type Engine,
  findViewsNaming,
  hideFromViews,
  type MonthParts,
  readMonths,
  readStoredColumns,
  refreshViews,
  type StoredColumn,
  sumMonths,
} from '../columns/tables.ts';
import {
  type CreateCommand,
  command,
  confirm,
  EXIT,
  endWith,
  jsonCommand,
  type Terminal,
  yesOption,
} from '../command.ts';
import { createProgress, toTable } from '../terminal.ts';

export interface ColumnsContext {
  readonly clickhouse: () => ClickHouseAccount;
  readonly wallClockMs: () => number;
  readonly stop: AbortSignal;
}

const ABOUT = `
Adds a typed column for an event property. Queries read and filter the column without parsing JSON.

Needs CLICKHOUSE_URL with the operator's account, or a local stack.`;

const ADD = `
In a path, escape a dot in a name as \\. and a backslash as \\\\.

Types: Int64, Float64, String, LowCardinality(String) for up to some ten thousand different values, Bool, and DateTime for
ISO 8601 strings such as 2026-01-02T03:04:05Z, stored in milliseconds.

New rows store the value at insert. Existing rows compute it on read until the backfill has stored it, so results are
always correct. After an interruption, run the command again. Every analyst who can read analysis_events
can read the column, even without raw ids: never add a column for a property that identifies people.`;

const name = () =>
  new Option('--name <name>', 'name of the column without its prefix: coins for property_coins')
    .argParser(parseName)
    .makeOptionMandatory();

export const createColumnsCommand =
  (context: ColumnsContext): CreateCommand =>
  (terminal) =>
    command('columns', 'add, list and drop columns for event properties')
      .addCommand(
        command('add', 'add a column to events and the views, and fill existing rows')
          .addOption(name())
          .requiredOption('--path <path>', 'path of the property, such as economy.coins', checkPath)
          .addOption(new Option('--type <type>', 'type of the column').choices(TYPE_NAMES).makeOptionMandatory())
          .option('--default <value>', 'value if the property is absent or has another type (default: NULL)')
          .addHelpText('after', ADD)
          .action((options) => {
            const wanted = parseColumn(options);
            return withWork(context, terminal, (work) => add(work, wanted));
          }),
      )
      .addCommand(
        jsonCommand('list', 'list the columns: path, type, default, creation, missing parts, bytes on disk').action(
          ({ json = false }) => withWork(context, terminal, (work) => list(work, json)),
        ),
      )
      .addCommand(
        command('drop', 'remove a column from the views and the table')
          .addOption(name())
          .addOption(yesOption())
          .addHelpText('after', '\nEvents keep their properties.')
          .action((options) => withWork(context, terminal, (work) => drop(work, options))),
      )
      .addHelpText('after', ABOUT);

function checkPath(text: string): string {
  parsePath(text);
  return text;
}

async function withWork(
  { clickhouse, wallClockMs, stop }: ColumnsContext,
  terminal: Terminal,
  act: (work: ColumnsWork) => Promise<void>,
): Promise<void> {
  const engine = createEngine(clickhouse());
  await awaitStore('ClickHouse', async () => (await engine.read('SELECT 1')).length === 1);
  try {
    await act({ engine, terminal, wallClockMs, signal: stop });
  } catch (fault) {
    if (!stop.aborted) throw fault;
    terminal.progress('interrupted: run the same command again');
    endWith(EXIT.failed);
  }
}

/** Each column costs half a microsecond per inserted row. */
export const COLUMNS_MAX = 50;

type WantedColumn = Omit<PropertyColumn, 'since'>;

/** Adds the column and fills existing rows. Running it again resumes unfinished work. */
async function add(work: ColumnsWork, wanted: WantedColumn): Promise<void> {
  const { engine, terminal, signal } = work;
  const column = columnOf(wanted.name);
  if (await isStored(engine, wanted)) terminal.progress(`${column} already exists: resuming unfinished work`);
  else await addColumn(work, wanted);
  const { changed, broken } = await refreshViews(engine);
  if (changed.length > 0) terminal.progress(`visible in these views: ${changed.join(', ')}`);
  for (const name of broken) terminal.progress(`view ${name} was broken before and is unchanged`);
  await backfill({ engine, column, progress: createProgress(terminal), signal });
  terminal.result(`${column}: ${describeColumn(wanted)}; stored in every part`);
}

async function addColumn({ engine, wallClockMs, signal }: ColumnsWork, wanted: WantedColumn): Promise<void> {
  // Waits until an earlier column with this name is dropped: its parts would count as filled.
  await awaitNone(engine, isOf('DROP', columnOf(wanted.name)), { onPoll: () => {}, signal });
  try {
    await engine.run(toAddStatement({ ...wanted, since: new Date(wallClockMs()).toISOString() }));
  } catch (fault) {
    // Another command may have added the column at the same time.
    if (!(await isStored(engine, wanted))) throw fault;
  }
}

/** @throws Error when the name is taken by another column, or the limit is reached */
async function isStored(engine: Engine, wanted: WantedColumn): Promise<boolean> {
  const stored = await readStoredColumns(engine);
  const found = stored.find(({ name }) => name === wanted.name);
  if (found === undefined && stored.length >= COLUMNS_MAX)
    throw new Error(`there are ${COLUMNS_MAX} property columns already: drop an unused column first`);
  if (found === undefined) return false;
  if (found.column !== null && describeColumn(found.column) === describeColumn(wanted)) return true;
  throw new Error(
    `${columnOf(wanted.name)} already exists as ${toText(found)}: choose another name, or drop that column first`,
  );
}

const toText = ({ column, type }: StoredColumn) =>
  column === null ? `${type}, added by other means` : describeColumn(column);

interface BackfillContext {
  readonly engine: Engine;
  /** Column name with its prefix. */
  readonly column: string;
  readonly progress: (line: string) => void;
  /** Aborts the wait; ClickHouse finishes the current month. */
  readonly signal: AbortSignal;
}

/** Older inserts may add parts to a month that was written. */
const ATTEMPTS_MAX = 5;

/**
 * Writes the column into every part that lacks it, newest month first, so that a deletion waits for one month only. The
 * parts show what remains: the backfill can be interrupted, repeated and run in parallel.
 * @throws Error when ClickHouse cannot write a part; the mutation is cancelled
 */
async function backfill(context: BackfillContext): Promise<void> {
  const attempts = new Map<string, number>();
  for (;;) {
    await awaitOtherMutations(context);
    const months = await readMonths(context.engine, context.column);
    const next = months.find(({ remaining }) => remaining > 0);
    if (next === undefined) return;
    const attempt = (attempts.get(next.month) ?? 0) + 1;
    if (attempt > ATTEMPTS_MAX)
      throw new Error(`month ${next.month} was written ${ATTEMPTS_MAX} times and still lacks the column`);
    attempts.set(next.month, attempt);
    await writeMonth(context, months, next);
  }
}

/** Waits for other mutations, such as deletions, and for mutations of a killed backfill of this column. */
async function awaitOtherMutations({ engine, column, progress, signal }: BackfillContext): Promise<void> {
  const isOwn = isOf('MATERIALIZE', column);
  const onPoll = async (left: readonly Unfinished[]) => {
    await cancelFailed(engine, left.filter(isOwn));
    const failing = left.find(({ fault }) => fault !== '');
    const fault = failing === undefined ? '' : `; ${failing.id} fails with ${failing.fault}`;
    progress(`backfill: waiting for ${left.length} other change(s) to events${fault}`);
  };
  await awaitNone(engine, () => true, { onPoll, signal });
}

async function writeMonth(
  { engine, column, progress, signal }: BackfillContext,
  months: readonly MonthParts[],
  next: MonthParts,
): Promise<void> {
  progress(toLine(months, next.month));
  await engine.run(
    `ALTER TABLE events MATERIALIZE COLUMN ${column} IN PARTITION ID '${next.month}' SETTINGS mutations_sync = 0`,
  );
  const onPoll = async (left: readonly Unfinished[]) => {
    await cancelFailed(engine, left);
    progress(toLine(await readMonths(engine, column), next.month));
  };
  await awaitNone(engine, isOf('MATERIALIZE', column), { onPoll, signal });
}

function toLine(months: readonly MonthParts[], month: string): string {
  const { parts, remaining } = sumMonths(months);
  return `backfill: ${parts - remaining} of ${parts} parts have the column; writing ${month}`;
}

async function cancelFailed(engine: Engine, own: readonly Unfinished[]): Promise<void> {
  const failed = own.find(({ fault }) => fault !== '');
  if (failed === undefined) return;
  await kill(engine, own);
  throw new Error(
    `the backfill failed with ${failed.fault}. Queries stay correct, but slower. Fix the cause and run the command again`,
  );
}

/** Removes the column from views and table, and waits until no file contains it. */
async function drop(
  { engine, terminal, signal }: ColumnsWork,
  options: { readonly name: string; readonly yes?: boolean | undefined },
): Promise<void> {
  const column = columnOf(options.name);
  const exists = (await readStoredColumns(engine)).some(({ name }) => name === options.name);
  const isDropping = (await readUnfinished(engine)).some(isOf('DROP', column));
  if (!exists && !isDropping) throw new Error(`there is no ${column}: npm run columns -- list shows all columns`);
  if (exists) {
    await confirm(`This drops ${column}. Events keep their properties.`, options, terminal);
    await dropColumn(engine, column);
  }
  const progress = createProgress(terminal);
  const onPoll = () => progress(`${column} is dropped; ClickHouse is rewriting files without it`);
  await awaitNone(engine, isOf('DROP', column), { onPoll, signal });
  terminal.result(`${column} is dropped`);
}

async function dropColumn(engine: Engine, column: string): Promise<void> {
  const naming = await findViewsNaming(engine, column);
  if (naming.length > 0)
    throw new Error(`${naming.join(', ')} would fail without ${column}: change or drop the dependent view first`);
  await hideFromViews(engine, column);
  try {
    // ClickHouse drops no column while it is being filled.
    await kill(engine, (await readUnfinished(engine)).filter(isOf('MATERIALIZE', column)));
    await engine.run(`ALTER TABLE events DROP COLUMN ${column} SETTINGS alter_sync = 0, mutations_sync = 0`);
  } catch (fault) {
    // The column still exists.
    await refreshViews(engine);
    throw fault;
  }
}

async function list({ engine, terminal }: ColumnsWork, json: boolean): Promise<void> {
  const rows = [];
  for (const stored of await readStoredColumns(engine))
    rows.push(toRow(stored, sumMonths(await readMonths(engine, columnOf(stored.name)))));
  if (json) for (const row of rows) terminal.result(JSON.stringify(row));
  else if (rows.length === 0) terminal.progress('no property has a column');
  else for (const line of toTable(HEAD, rows.map(toCells))) terminal.result(line);
}

type Row = ReturnType<typeof toRow>;

function toRow(
  { name, type, column }: StoredColumn,
  { parts, remaining, bytes, unmeasured }: ReturnType<typeof sumMonths>,
) {
  return {
    name,
    column: columnOf(name),
    path: column?.path ?? null,
    type: column?.type ?? type,
    default: column?.fallback ?? null,
    since: column?.since ?? null,
    parts,
    partsToDo: remaining,
    bytesOnDisk: bytes,
    partsWithoutBytes: unmeasured,
  };
}

const HEAD = ['column', 'path', 'type', 'default', 'since', 'backfill', 'on disk'];

function toCells(row: Row): string[] {
  const backfill = row.partsToDo === 0 ? 'done' : `${row.partsToDo} of ${row.parts} parts to do`;
  const unmeasured = row.partsWithoutBytes === 0 ? '' : ` and ${row.partsWithoutBytes} small parts`;
  return [
    ...[row.column, row.path ?? '(added by other means)', row.type],
    ...[row.default === null ? 'NULL' : JSON.stringify(row.default), row.since ?? '-', backfill],
    `${row.bytesOnDisk} bytes${unmeasured}`,
  ];
}

interface ColumnsWork {
  readonly engine: Engine;
  readonly terminal: Terminal;
  readonly wallClockMs: () => number;
  readonly signal: AbortSignal;
}

/** An unfinished mutation of `events`. */
type Unfinished = Awaited<ReturnType<typeof readUnfinished>>[number];

const POLL_MIN_MS = 20;
const POLL_MAX_MS = 1_000;

async function readUnfinished(engine: Engine) {
  const rows = await engine.read(`SELECT mutation_id, command, latest_fail_reason FROM system.mutations
    WHERE database = currentDatabase() AND table = 'events' AND NOT is_done AND NOT is_killed ORDER BY create_time`);
  return rows.map(([id, command, reason]) => ({
    id: String(id),
    command: String(command),
    /** The name of the error, or ''. The message is omitted, because it may contain a value. */
    fault: reason === '' ? '' : (/\(([A-Z0-9_]+)\)/.exec(String(reason))?.[1] ?? 'UNKNOWN'),
  }));
}

/** Whether a mutation affects the column, named with its prefix. */
const isOf = (verb: 'MATERIALIZE' | 'DROP', column: string) => {
  const pattern = new RegExp(`\\b${verb} COLUMN \`?${column}\\b`);
  return ({ command }: Unfinished): boolean => pattern.test(command);
};

async function kill(engine: Engine, mutations: readonly Unfinished[]): Promise<void> {
  if (mutations.length === 0) return;
  const ids = mutations.map(({ id }) => quoteText(id)).join(', ');
  await engine.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = 'events' AND mutation_id IN (${ids}) SYNC`,
  );
}

interface WaitOptions {
  readonly onPoll: (waitedFor: readonly Unfinished[]) => void | Promise<void>;
  readonly signal: AbortSignal;
}

/** Waits until no matching mutation is left; `onPoll` receives those that are. @throws the signal's reason */
async function awaitNone(
  engine: Engine,
  isWaitedFor: (mutation: Unfinished) => boolean,
  { onPoll, signal }: WaitOptions,
): Promise<void> {
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    signal.throwIfAborted();
    const left = (await readUnfinished(engine)).filter(isWaitedFor);
    if (left.length === 0) return;
    await onPoll(left);
    await pauseOrThrow(pauseMs, signal);
  }
}
