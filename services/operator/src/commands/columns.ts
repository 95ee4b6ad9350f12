import { Option } from '@commander-js/extra-typings';
import { type ClickHouseAccount, pauseOrThrow, quoteText } from '@playline/stores';
import { assertSingleServer } from '../addresses.ts';
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
  createSqlClient,
  findViewsUsing,
  hideFromViews,
  type MonthParts,
  readMonths,
  readStoredColumns,
  refreshViews,
  type SqlClient,
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
A property column stores an event property as a typed ClickHouse column, so that queries do not parse JSON.

Requires CLICKHOUSE_URL with the operator account, or a local stack.`;

const ADD = `
Paths separate property names with dots. Escape a dot in a name as \\. and a backslash as \\\\.

Types: Int64, Float64, String, LowCardinality(String) for at most about 10,000 distinct values, Bool, and DateTime for
ISO 8601 strings such as 2026-01-02T03:04:05Z, stored with millisecond precision.

New rows store the value when they are inserted. In existing rows, the value is computed on read until the backfill has
stored it, so query results are always correct. To resume after an interruption, run the command again.

All analysts who can read analysis_events can read the column, even without access to raw ids. Do not add columns for
properties that identify people.`;

const name = () =>
  new Option('--name <name>', 'column name without its prefix: coins for property_coins')
    .argParser(parseName)
    .makeOptionMandatory();

export const createColumnsCommand =
  (context: ColumnsContext): CreateCommand =>
  (terminal) =>
    command('columns', 'manage ClickHouse columns for event properties')
      .addCommand(
        command('add', 'add a column to the events table and its views, and backfill existing rows')
          .addOption(name())
          .requiredOption('--path <path>', 'property path, such as economy.coins', checkPath)
          .addOption(new Option('--type <type>', 'column type').choices(TYPE_NAMES).makeOptionMandatory())
          .option('--default <value>', 'value if the property is missing or has another type (default: NULL)')
          .addHelpText('after', ADD)
          .action((options) => {
            const definition = parseColumn(options);
            return withDeps(context, terminal, (deps) => add(deps, definition));
          }),
      )
      .addCommand(
        jsonCommand('list', 'list columns with their path, type, default, backfill progress and size').action(
          ({ json = false }) => withDeps(context, terminal, (deps) => list(deps, json)),
        ),
      )
      .addCommand(
        command('drop', 'drop a column from the events table and its views')
          .addOption(name())
          .addOption(yesOption())
          .addHelpText('after', '\nThe properties of events are not affected.')
          .action((options) => withDeps(context, terminal, (deps) => drop(deps, options))),
      )
      .addHelpText('after', ABOUT);

function checkPath(text: string): string {
  parsePath(text);
  return text;
}

async function withDeps(
  { clickhouse, wallClockMs, stop }: ColumnsContext,
  terminal: Terminal,
  run: (deps: ColumnsDeps) => Promise<void>,
): Promise<void> {
  const client = createSqlClient(assertSingleServer(clickhouse(), 'columns'));
  await awaitStore('ClickHouse', async () => (await client.read('SELECT 1')).length === 1);
  try {
    await run({ client, terminal, wallClockMs, signal: stop });
  } catch (fault) {
    if (!stop.aborted) throw fault;
    terminal.progress('interrupted: run the command again to resume');
    endWith(EXIT.failed);
  }
}

/** Each column costs half a microsecond per inserted row. */
export const COLUMNS_MAX = 50;

type ColumnDefinition = Omit<PropertyColumn, 'since'>;

/** Adds the column and backfills existing rows, or resumes an unfinished backfill. */
async function add(deps: ColumnsDeps, definition: ColumnDefinition): Promise<void> {
  const { client, terminal, signal } = deps;
  const column = columnOf(definition.name);
  if (await isStored(client, definition)) terminal.progress(`${column} already exists: resuming its backfill`);
  else await addColumn(deps, definition);
  const { changed, broken } = await refreshViews(client);
  if (changed.length > 0) terminal.progress(`views that now include ${column}: ${changed.join(', ')}`);
  for (const name of broken) terminal.progress(`view ${name} was already broken and was not changed`);
  await backfill({ client, column, progress: createProgress(terminal), signal });
  terminal.result(`${column}: ${describeColumn(definition)}; the backfill is complete`);
}

async function addColumn({ client, wallClockMs, signal }: ColumnsDeps, definition: ColumnDefinition): Promise<void> {
  // Parts that still contain a dropped column of this name would count as filled.
  await awaitNone(client, isMutationOf('DROP', columnOf(definition.name)), { onPoll: () => {}, signal });
  try {
    await client.run(toAddStatement({ ...definition, since: new Date(wallClockMs()).toISOString() }));
  } catch (fault) {
    // Another command may have added the column at the same time.
    if (!(await isStored(client, definition))) throw fault;
  }
}

/** @throws Error when another column has this name, or the limit is reached */
async function isStored(client: SqlClient, definition: ColumnDefinition): Promise<boolean> {
  const stored = await readStoredColumns(client);
  const found = stored.find(({ name }) => name === definition.name);
  if (found === undefined && stored.length >= COLUMNS_MAX)
    throw new Error(`the limit of ${COLUMNS_MAX} property columns is reached: drop an unused column first`);
  if (found === undefined) return false;
  if (found.column !== null && describeColumn(found.column) === describeColumn(definition)) return true;
  const existing = found.column === null ? `${found.type}, not added by this command` : describeColumn(found.column);
  const advice = 'choose another name, or drop the existing column first';
  throw new Error(`${columnOf(definition.name)} already exists as ${existing}: ${advice}`);
}

/** Aborting `signal` stops waiting; ClickHouse still finishes the current month. */
interface BackfillContext extends Pick<ColumnsDeps, 'client' | 'signal'> {
  /** Column name, including the prefix. */
  readonly column: string;
  readonly progress: (line: string) => void;
}

/** Inserts that started earlier may add parts to a month that is already filled. */
const ATTEMPTS_MAX = 5;

/**
 * Fills the column month by month, newest first, so that a deletion never waits for more than one month. The
 * remaining work is read from the parts: the backfill can be interrupted, repeated and run in parallel.
 * @throws Error when ClickHouse cannot write a part; the mutation is cancelled first
 */
async function backfill(context: BackfillContext): Promise<void> {
  const attempts = new Map<string, number>();
  for (;;) {
    await awaitOtherMutations(context);
    const months = await readMonths(context.client, context.column);
    const next = months.find(({ remaining }) => remaining > 0);
    if (next === undefined) return;
    const attempt = (attempts.get(next.month) ?? 0) + 1;
    if (attempt > ATTEMPTS_MAX)
      throw new Error(
        `the backfill of month ${next.month} is still incomplete after ${ATTEMPTS_MAX} attempts: run the command again`,
      );
    attempts.set(next.month, attempt);
    await writeMonth(context, months, next);
  }
}

/** Waits for other mutations, such as deletions and mutations from a killed backfill. */
async function awaitOtherMutations({ client, column, progress, signal }: BackfillContext): Promise<void> {
  const isBackfill = isMutationOf('MATERIALIZE', column);
  const onPoll = async (pending: readonly PendingMutation[]) => {
    await cancelFailed(client, pending.filter(isBackfill));
    const failing = pending.find(({ fault }) => fault !== '');
    const fault = failing === undefined ? '' : `; mutation ${failing.id} fails with ${failing.fault}`;
    progress(`backfill: waiting for other mutations on events: ${pending.length}${fault}`);
  };
  await awaitNone(client, () => true, { onPoll, signal });
}

async function writeMonth(
  { client, column, progress, signal }: BackfillContext,
  months: readonly MonthParts[],
  next: MonthParts,
): Promise<void> {
  progress(toLine(months, next.month));
  await client.run(
    `ALTER TABLE events MATERIALIZE COLUMN ${column} IN PARTITION ID '${next.month}' SETTINGS mutations_sync = 0`,
  );
  const onPoll = async (pending: readonly PendingMutation[]) => {
    await cancelFailed(client, pending);
    progress(toLine(await readMonths(client, column), next.month));
  };
  await awaitNone(client, isMutationOf('MATERIALIZE', column), { onPoll, signal });
}

function toLine(months: readonly MonthParts[], month: string): string {
  const { parts, remaining } = sumMonths(months);
  return `backfill: ${parts - remaining} of ${parts} parts have the column; writing ${month}`;
}

async function cancelFailed(client: SqlClient, mutations: readonly PendingMutation[]): Promise<void> {
  const failed = mutations.find(({ fault }) => fault !== '');
  if (failed === undefined) return;
  await kill(client, mutations);
  throw new Error(
    `the backfill failed with ${failed.fault}: queries remain correct but slow. Fix the cause and run the command again`,
  );
}

/** Drops the column from the views and the table, and waits until ClickHouse has rewritten all files. */
async function drop(
  { client, terminal, signal }: ColumnsDeps,
  options: { readonly name: string; readonly yes?: boolean | undefined },
): Promise<void> {
  const column = columnOf(options.name);
  const exists = (await readStoredColumns(client)).some(({ name }) => name === options.name);
  const isDropping = (await readUnfinished(client)).some(isMutationOf('DROP', column));
  if (!exists && !isDropping)
    throw new Error(`column ${column} does not exist: npm run columns -- list shows all columns`);
  if (exists) {
    await confirm(`This drops ${column}. The properties of events are not affected.`, options, terminal);
    await dropColumn(client, column);
  }
  const progress = createProgress(terminal);
  const onPoll = () => progress(`${column} dropped; waiting for ClickHouse to rewrite the files`);
  await awaitNone(client, isMutationOf('DROP', column), { onPoll, signal });
  terminal.result(`${column} dropped`);
}

async function dropColumn(client: SqlClient, column: string): Promise<void> {
  const dependentViews = await findViewsUsing(client, column);
  if (dependentViews.length > 0)
    throw new Error(`these views depend on ${column}: ${dependentViews.join(', ')}. Change or drop them first`);
  await hideFromViews(client, column);
  try {
    // ClickHouse cannot drop a column during its backfill.
    await kill(client, (await readUnfinished(client)).filter(isMutationOf('MATERIALIZE', column)));
    await client.run(`ALTER TABLE events DROP COLUMN ${column} SETTINGS alter_sync = 0, mutations_sync = 0`);
  } catch (fault) {
    // The column still exists.
    await refreshViews(client);
    throw fault;
  }
}

async function list({ client, terminal }: ColumnsDeps, json: boolean): Promise<void> {
  const rows = [];
  for (const stored of await readStoredColumns(client))
    rows.push(toRow(stored, sumMonths(await readMonths(client, columnOf(stored.name)))));
  if (json) for (const row of rows) terminal.result(JSON.stringify(row));
  else if (rows.length === 0) terminal.progress('no property columns');
  else for (const line of toTable(HEADERS, rows.map(toCells))) terminal.result(line);
}

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

const HEADERS = ['column', 'path', 'type', 'default', 'since', 'backfill', 'on disk'];

function toCells(row: ReturnType<typeof toRow>): string[] {
  const backfill = row.partsToDo === 0 ? 'done' : `${row.partsToDo} of ${row.parts} parts remaining`;
  const unmeasured = row.partsWithoutBytes === 0 ? '' : ` and ${row.partsWithoutBytes} small parts`;
  return [
    ...[row.column, row.path ?? '(unknown)', row.type],
    ...[row.default === null ? 'NULL' : JSON.stringify(row.default), row.since ?? '-', backfill],
    `${row.bytesOnDisk} bytes${unmeasured}`,
  ];
}

interface ColumnsDeps {
  readonly client: SqlClient;
  readonly terminal: Terminal;
  readonly wallClockMs: () => number;
  readonly signal: AbortSignal;
}

/** An unfinished mutation of `events`. */
type PendingMutation = Awaited<ReturnType<typeof readUnfinished>>[number];

const POLL_MIN_MS = 20;
const POLL_MAX_MS = 1_000;

async function readUnfinished(client: SqlClient) {
  const rows = await client.read(`SELECT mutation_id, command, latest_fail_reason FROM system.mutations
    WHERE database = currentDatabase() AND table = 'events' AND NOT is_done AND NOT is_killed ORDER BY create_time`);
  return rows.map(([id, command, reason]) => ({
    id: String(id),
    command: String(command),
    /** Error name, or ''. The message is omitted because it may contain property values. */
    fault: reason === '' ? '' : (/\(([A-Z0-9_]+)\)/.exec(String(reason))?.[1] ?? 'UNKNOWN'),
  }));
}

/** Matches mutations of a column; `column` includes the prefix. */
const isMutationOf = (verb: 'MATERIALIZE' | 'DROP', column: string) => {
  const pattern = new RegExp(`\\b${verb} COLUMN \`?${column}\\b`);
  return ({ command }: PendingMutation): boolean => pattern.test(command);
};

async function kill(client: SqlClient, mutations: readonly PendingMutation[]): Promise<void> {
  if (mutations.length === 0) return;
  const ids = mutations.map(({ id }) => quoteText(id)).join(', ');
  await client.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = 'events' AND mutation_id IN (${ids}) SYNC`,
  );
}

/** Polls until no unfinished mutation matches; `onPoll` receives the matches. @throws the signal's reason */
async function awaitNone(
  client: SqlClient,
  matches: (mutation: PendingMutation) => boolean,
  { onPoll, signal }: { onPoll: (pending: readonly PendingMutation[]) => void | Promise<void>; signal: AbortSignal },
): Promise<void> {
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    signal.throwIfAborted();
    const pending = (await readUnfinished(client)).filter(matches);
    if (pending.length === 0) return;
    await onPoll(pending);
    await pauseOrThrow(pauseMs, signal);
  }
}
