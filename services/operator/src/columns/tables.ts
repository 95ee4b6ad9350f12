/** Reads and changes the property columns of `events` and its views. */
import { type ClickHouseAccount, createQueryRows, quoteText, readRows, sendStatement } from '@playline/stores';
import { PREFIX, type PropertyColumn, readComment } from './property-column.ts';

/** Queries the ClickHouse database that contains `events`. */
export interface SqlClient {
  /** Returns rows; large integers are strings. */
  read(sql: string): Promise<(readonly unknown[])[]>;
  /** @throws Error from ClickHouse or the connection */
  run(sql: string): Promise<void>;
}

/** Statements only start mutations, and do not wait for them. */
const STATEMENT_MAX_MS = 60_000;

export function createSqlClient(account: ClickHouseAccount): SqlClient {
  const query = createQueryRows(account);
  return {
    read: (sql) => readRows(query(sql)),
    async run(sql) {
      // Without this setting, an error after the first response bytes would look like success.
      const settings = { wait_end_of_query: '1' };
      await (await sendStatement(account, { body: sql, settings, deadlineMs: STATEMENT_MAX_MS })).text();
    },
  };
}

export interface StoredColumn {
  /** Without the prefix. */
  readonly name: string;
  /** ClickHouse type. */
  readonly type: string;
  /** Null if the column was not added by this command. */
  readonly column: PropertyColumn | null;
}

/** Backfill progress of one partition of `events`. */
export interface MonthParts {
  readonly month: string;
  readonly parts: number;
  /** Parts without the column, in which the value is computed on read. */
  readonly remaining: number;
  readonly bytes: number;
  /** Small parts, which store all columns in one file and do not report bytes per column. */
  readonly unmeasured: number;
}

/** Reads the property columns, sorted by name. */
export async function readStoredColumns(client: SqlClient): Promise<StoredColumn[]> {
  const columns = (await readColumns(client, 'events')).filter(({ name }) => name.startsWith(PREFIX));
  return columns
    .map(({ name: column, type, comment }) => {
      const name = column.slice(PREFIX.length);
      return { name, type, column: readComment(name, comment) };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reads the backfill progress, newest month first. @param column name with prefix */
export async function readMonths(client: SqlClient, column: string): Promise<MonthParts[]> {
  const rows = await client.read(`SELECT partition_id, count(), countIf(NOT has), sum(bytes), countIf(has AND bytes = 0)
    FROM (
      SELECT partition_id, name, countIf(column = '${column}') > 0 AS has,
        sumIf(column_bytes_on_disk, column = '${column}') AS bytes
      FROM system.parts_columns
      WHERE database = currentDatabase() AND table = 'events' AND active AND rows > 0
      GROUP BY partition_id, name)
    GROUP BY partition_id ORDER BY partition_id DESC`);
  return rows.map(([month, ...numbers]) => {
    const [parts = 0, remaining = 0, bytes = 0, unmeasured = 0] = numbers.map(Number);
    return { month: String(month), parts, remaining, bytes, unmeasured };
  });
}

export function sumMonths(months: readonly MonthParts[]): Omit<MonthParts, 'month'> {
  const sum = (field: keyof Omit<MonthParts, 'month'>) => months.reduce((total, month) => total + month[field], 0);
  return { parts: sum('parts'), remaining: sum('remaining'), bytes: sum('bytes'), unmeasured: sum('unmeasured') };
}

type ViewColumn = Awaited<ReturnType<typeof readColumns>>[number];

interface View {
  readonly name: string;
  /** The query as written, in which `*` is not expanded. */
  readonly text: string;
  /** SQL SECURITY clause of CREATE VIEW. */
  readonly security: string;
  readonly comment: string;
  readonly columns: readonly ViewColumn[];
}

/**
 * Recreates views whose query now selects different property columns, in dependency order. Parameterised views do not
 * need this, because they do not store a column list.
 * @returns the changed views, and the broken views, which were not changed because their query fails
 */
export async function refreshViews(client: SqlClient) {
  const [changed, broken]: [string[], string[]] = [[], []];
  const comments = await readColumns(client, 'events');
  for (const view of await readViews(client)) {
    const columns = await describe(client, view, comments);
    if (columns === null) broken.push(view.name);
    else if (propertiesOf(columns) !== propertiesOf(view.columns)) {
      await replaceView(client, view, columns);
      changed.push(view.name);
    }
  }
  return { changed, broken };
}

/** Removes a column from all views before it is dropped from `events`. Dependent views are changed first. */
export async function hideFromViews(client: SqlClient, column: string): Promise<void> {
  for (const view of (await readViews(client)).toReversed()) {
    const rest = view.columns.filter(({ name }) => name !== column);
    if (rest.length < view.columns.length) await replaceView(client, view, rest);
  }
}

/** Finds views, including materialized views, whose query names the column and would fail without it. */
export async function findViewsUsing(client: SqlClient, column: string): Promise<string[]> {
  const rows = await client.read(`SELECT name FROM system.tables
    WHERE database = currentDatabase() AND match(as_select, ${quoteText(`\\b${column}\\b`)}) ORDER BY name`);
  return rows.map(([name]) => String(name));
}

const propertiesOf = (columns: readonly ViewColumn[]) =>
  JSON.stringify(columns.filter(({ name }) => name.startsWith(PREFIX)).map(({ name, type }) => [name, type]));

/** Reads the views in dependency order. */
async function readViews(client: SqlClient): Promise<View[]> {
  const rows = await client.read(`SELECT name, as_select, create_table_query, definer, comment FROM system.tables
    WHERE database = currentDatabase() AND engine = 'View' AND empty(parameterized_view_parameters) ORDER BY name`);
  const views: View[] = [];
  for (const row of rows) {
    const [name = '', text = '', created = '', definer = '', comment = ''] = row.map(String);
    const columns = await readColumns(client, name);
    views.push({ name, text, security: securityOf(created, definer), comment, columns });
  }
  return sortViews(views);
}

async function readColumns(client: SqlClient, table: string) {
  const rows = await client.read(`SELECT name, type, comment FROM system.columns
    WHERE database = currentDatabase() AND table = ${quoteText(table)} ORDER BY position`);
  return rows.map(([name, type, comment]) => ({ name: String(name), type: String(type), comment: String(comment) }));
}

/** Reads the SQL SECURITY clause. Quoted text is removed first, because it may contain similar clauses. */
function securityOf(created: string, definer: string): string {
  const unquoted = created.replace(/'(\\.|[^'\\])*'|`(\\.|[^`\\])*`/g, '');
  const clause = /\bSQL SECURITY (DEFINER|INVOKER|NONE)\b/.exec(unquoted)?.[0] ?? '';
  return definer === '' ? clause : `DEFINER = ${toName(definer)} ${clause}`;
}

/** Sorts each view after the views that its query names. A false match affects only the order. */
function sortViews(views: readonly View[]): View[] {
  const sorted: View[] = [];
  const visit = (view: View, visiting: ReadonlySet<View>) => {
    if (sorted.includes(view) || visiting.has(view)) return;
    const names = new Set(view.text.match(/\w+/g));
    for (const other of views) if (other !== view && names.has(other.name)) visit(other, new Set([...visiting, view]));
    sorted.push(view);
  };
  for (const view of views) visit(view, new Set());
  return sorted;
}

/** Returns the columns that the query selects now, or null if the query fails. */
async function describe(client: SqlClient, view: View, eventsColumns: readonly ViewColumn[]) {
  const comments = [...view.columns, ...eventsColumns.filter(({ name }) => name.startsWith(PREFIX))];
  try {
    const rows = await client.read(`DESCRIBE TABLE (${view.text})`);
    return rows.map(([name, type]) => ({
      name: String(name),
      type: String(type),
      comment: comments.find((each) => each.name === name)?.comment ?? '',
    }));
  } catch (fault) {
    // The view is broken, or ClickHouse is unavailable, which the next query reports.
    if (fault instanceof Error && fault.name === 'ClickHouseFault') return null;
    throw fault;
  }
}

async function replaceView(client: SqlClient, view: View, columns: readonly ViewColumn[]): Promise<void> {
  const list = columns.map(
    ({ name, type, comment }) => `${toName(name)} ${type}${comment === '' ? '' : ` COMMENT ${quoteText(comment)}`}`,
  );
  const comment = view.comment === '' ? '' : `COMMENT ${quoteText(view.comment)}`;
  await client.run(
    `CREATE OR REPLACE VIEW ${toName(view.name)} (${list.join(', ')}) ${view.security} ${comment} AS ${view.text}`,
  );
}

const toName = (name: string): string => `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
