import { DERIVED_TABLES, type DerivedTable, differencesOf } from '@playline/erasure';
import { type QueryRows, quoteText, readRows } from '@playline/stores';

/** How far a derived table differs from the events. */
export interface Drift {
  readonly table: string;
  /** Rows that follow from events but are not in the table. */
  readonly missing: number;
  /** Rows that follow from no event. */
  readonly unfounded: number;
  /** Why the comparison was not finished; null when it was. */
  readonly fault: string | null;
}

/** A part of a derived table that is compared and repaired by itself, as SQL. */
export interface Span {
  readonly table: DerivedTable;
  /** Name shown to people. */
  readonly name: string;
  /** Condition of the derived table. */
  readonly where: string;
  /** Query of the same rows from the events. */
  readonly derived: string;
}

/** A row that only one side has. */
export interface Difference {
  readonly environmentId: string;
  /** Hexadecimal. */
  readonly key: string;
  readonly kind: 'missing' | 'unfounded';
}

/** Maximum number of differences that are checked again one by one; others are only counted. */
const LOOKED_AT_MAX = 1_000;
/**
 * An identity with continuous inserts may be half written at any look: in a measurement about every third look met one.
 * Ten in a row are one in some thirty thousand, and only differences cost that many looks.
 */
const LOOKS_MAX = 10;
const POLL_MS = 200;
/**
 * Rows of a part, so that other queries do not wait long for its statement. Each part reads all events, since an event
 * may be of any identity: so the number of parts is kept low.
 */
const SLICE_ROWS = 2_000_000;
/** One for each first byte of a key. With more than 512 million rows the parts are larger. */
const SLICES_MAX = 256;
const ALL = "since = '1900-01-01 00:00:00', until = '2299-12-31 00:00:00'";
/** Limits the memory of a comparison, whatever the tables contain. */
const SETTINGS = 'SETTINGS max_bytes_before_external_group_by = 500000000';

/**
 * The parts of all derived tables: months for rows with a day, otherwise slices of the identities.
 * @param sliceRows rows of a slice; at least about half of it, where the table is longer
 */
export async function listSpans(query: QueryRows, sliceRows: number = SLICE_ROWS): Promise<Span[]> {
  const spans: Span[] = [];
  for (const table of DERIVED_TABLES) {
    const ofTable = table.clearing.keys.includes('day')
      ? listMonths(query, table)
      : listSlices(query, table, sliceRows);
    for (const each of await ofTable) spans.push(each);
  }
  return spans;
}

async function listMonths(query: QueryRows, table: DerivedTable): Promise<Span[]> {
  const months = await readRows(
    query(`SELECT DISTINCT month FROM (
      SELECT toStartOfMonth(day) AS month FROM ${table.name} GROUP BY month
      UNION ALL SELECT toStartOfMonth(event_time) AS month FROM events GROUP BY month) ORDER BY month`),
  );
  return months.map(([month]) => {
    const until = `addMonths(toDate('${month}'), 1)`;
    return {
      table,
      name: `${table.name} of ${String(month).slice(0, 7)}`,
      where: `day >= '${month}' AND day < ${until}`,
      derived: `${table.clearing.view}(since = '${month} 00:00:00', until = '${nextMonth(String(month))} 00:00:00') WHERE 1`,
    };
  });
}

function nextMonth(month: string): string {
  const date = new Date(`${month}T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + 1);
  return date.toISOString().slice(0, 10);
}

async function listSlices(query: QueryRows, table: DerivedTable, sliceRows: number): Promise<Span[]> {
  // Counts the events too: a table that lost its rows would look short.
  const [[rows] = [0]] = await readRows(
    query(`SELECT greatest((SELECT count() FROM ${table.name}), (SELECT uniq(identity_key) FROM events))`),
  );
  // A power of two, so that all slices have the same number of the 256 first bytes.
  const slices = Math.min(2 ** Math.ceil(Math.log2(Math.max(1, Number(rows) / sliceRows))), SLICES_MAX);
  return Array.from({ length: slices }, (_, slice) => {
    const where = `reinterpretAsUInt8(identity_key) % ${slices} = ${slice}`;
    return {
      table,
      name: slices === 1 ? table.name : `${table.name}, part ${slice + 1} of ${slices}`,
      where,
      derived: `${table.clearing.view}(${ALL}) WHERE ${where}`,
    };
  });
}

/**
 * Rows that only one of table and events has. Writers may run: an insert reaches one side before the other, so a
 * difference counts only if it is still there after the inserts that were running have ended.
 * @returns at most a thousand of them, and their number at the first look
 */
export async function findDifferences(query: QueryRows, span: Span): Promise<{ found: Difference[]; rows: number }> {
  const { rows, found: first } = await compare(query, span, '1');
  let [found, counted] = [first, rows];
  for (let look = 1; look < LOOKS_MAX && found.length > 0; look++) {
    await awaitInserts(query);
    const again = await compare(query, span, counted > LOOKED_AT_MAX ? '1' : ofIdentities(found));
    const names = new Set(again.found.map(nameOf));
    found = counted > LOOKED_AT_MAX ? again.found : found.filter((each) => names.has(nameOf(each)));
    counted = counted > LOOKED_AT_MAX ? again.rows : found.length;
  }
  return { found, rows: counted };
}

const nameOf = ({ environmentId, key, kind }: Difference) => `${kind} ${key} ${environmentId}`;

/** The condition that a row belongs to one of these identities. */
export const ofIdentities = (of: readonly Pick<Difference, 'environmentId' | 'key'>[]): string =>
  `(environment_id, identity_key) IN (${of.map(({ environmentId, key }) => `(${quoteText(environmentId)}, unhex('${key}'))`).join(', ')})`;

async function compare(query: QueryRows, { table, where, derived }: Span, and: string) {
  const stored = `${table.name} WHERE ${where} AND ${and}`;
  const different = differencesOf(table, { stored, derived: `${derived} AND ${and}` });
  const rows = await readRows(
    query(`SELECT environment_id, lower(hex(identity_key)), sides, count() OVER () FROM (${different})
      LIMIT ${LOOKED_AT_MAX} ${SETTINGS}`),
  );
  const found = rows.map(([environmentId, key, sides]): Difference => {
    const kind = Number(sides) === 1 ? 'unfounded' : 'missing';
    return { environmentId: String(environmentId), key: String(key), kind };
  });
  return { found, rows: Number(rows[0]?.[3] ?? 0) };
}

/** Waits until all inserts have ended that were running at the call. */
export async function awaitInserts(query: QueryRows): Promise<void> {
  const running = async () => {
    const inserts = `SELECT query_id FROM system.processes WHERE query_kind = 'Insert' AND current_database = currentDatabase()`;
    return (await readRows(query(inserts))).map(([id]) => String(id));
  };
  const awaited = await running();
  for (;;) {
    const now = await running();
    if (!awaited.some((id) => now.includes(id))) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Compares every derived table with the events. Only reads. */
export async function findDrift(query: QueryRows, onProgress: (line: string) => void): Promise<Drift[]> {
  const drifts = new Map(
    DERIVED_TABLES.map(({ name }) => [name, { table: name, missing: 0, unfounded: 0, fault: null as string | null }]),
  );
  for (const span of await listSpans(query)) {
    onProgress(`comparing ${span.name} with events`);
    const drift = drifts.get(span.table.name)!;
    const told = await findDifferences(query, span).catch((fault: unknown) => {
      drift.fault = fault instanceof Error ? fault.message : String(fault);
      return { found: [], rows: 0 };
    });
    const { found, rows } = told;
    const unfounded = found.filter(({ kind }) => kind === 'unfounded').length;
    drift.unfounded += unfounded;
    drift.missing += rows - unfounded;
  }
  return [...drifts.values()];
}
