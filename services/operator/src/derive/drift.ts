/** Compares derived tables with the events. */
import { DERIVED_TABLES, type DerivedTable, differencesOf } from '@playline/erasure';
import { awaitInserts, IS_INSERT, type QueryRows, quoteText, readRows } from '@playline/stores';

export interface Drift {
  readonly table: string;
  readonly missing: number;
  /** Rows without an event. */
  readonly unfounded: number;
  /** Why the comparison failed, or null. */
  readonly fault: string | null;
}

/** A slice of a derived table that is compared and repaired separately. */
export interface TableSlice {
  readonly table: DerivedTable;
  readonly name: string;
  /** SQL condition that selects the rows in the derived table. */
  readonly where: string;
  /** SQL query that derives the same rows from the events. */
  readonly derived: string;
}

/** A row that the derived table lacks, or that has no event; the key is hexadecimal. */
export interface Difference {
  readonly environmentId: string;
  readonly key: string;
  readonly kind: 'missing' | 'unfounded';
}

/** Further differences are only counted. */
const COMPARED_MAX = 1_000;
/** During continuous inserts, a third of the comparisons may see a partly inserted identity; ten in a row are rare. */
const COMPARISONS_MAX = 10;
/** Every slice reads all events, so slices are as large as memory allows. */
const SLICE_ROWS = 2_000_000;
/** Slices are selected by the first byte of a key. */
const SLICES_MAX = 256;
const ALL = "since = '1900-01-01 00:00:00', until = '2299-12-31 00:00:00'";
/** Limits the memory of a comparison. */
const SETTINGS = 'SETTINGS max_bytes_before_external_group_by = 500000000';

/** Divides derived tables into slices: by month for tables with a day column, otherwise by identity. */
export async function listTableSlices(query: QueryRows, sliceRows: number = SLICE_ROWS): Promise<TableSlice[]> {
  const slices: TableSlice[] = [];
  for (const table of DERIVED_TABLES) {
    const isDaily = table.clearing.keys.includes('day');
    const ofTable = isDaily ? listMonths(query, table) : listSlices(query, table, sliceRows);
    for (const each of await ofTable) slices.push(each);
  }
  return slices;
}

async function listMonths(query: QueryRows, table: DerivedTable): Promise<TableSlice[]> {
  const months = await readRows(
    query(`SELECT DISTINCT month FROM (
      SELECT toStartOfMonth(day) AS month FROM ${table.name} GROUP BY month
      UNION ALL SELECT toStartOfMonth(event_time) AS month FROM events GROUP BY month) ORDER BY month`),
  );
  return months.map(([month]) => {
    const until = `addMonths(toDate('${month}'), 1)`;
    return {
      table,
      name: `${table.name} for ${String(month).slice(0, 7)}`,
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

async function listSlices(query: QueryRows, table: DerivedTable, sliceRows: number): Promise<TableSlice[]> {
  // Also counts the identities in events, because the table may have lost rows.
  const [[rows] = [0]] = await readRows(
    query(`SELECT greatest((SELECT count() FROM ${table.name}), (SELECT uniq(identity_key) FROM events))`),
  );
  // A power of two, so that every slice contains the same number of byte values.
  const slices = Math.min(2 ** Math.ceil(Math.log2(Math.max(1, Number(rows) / sliceRows))), SLICES_MAX);
  return Array.from({ length: slices }, (_, slice) => {
    const where = `reinterpretAsUInt8(identity_key) % ${slices} = ${slice}`;
    return {
      table,
      name: slices === 1 ? table.name : `${table.name}, slice ${slice + 1} of ${slices}`,
      where,
      derived: `${table.clearing.view}(${ALL}) WHERE ${where}`,
    };
  });
}

/**
 * Finds rows that still differ after all concurrent inserts have completed.
 * @returns up to a thousand rows, and the total number of rows
 */
export async function findDifferences(
  query: QueryRows,
  slice: TableSlice,
): Promise<{ found: Difference[]; rows: number }> {
  const { rows, found: first } = await compare(query, slice, '1');
  let [found, counted] = [first, rows];
  for (let round = 1; round < COMPARISONS_MAX && found.length > 0; round++) {
    await awaitRunningInserts(query);
    const recheck = await compare(query, slice, counted > COMPARED_MAX ? '1' : toIdentityFilter(found));
    const names = new Set(recheck.found.map(nameOf));
    found = counted > COMPARED_MAX ? recheck.found : found.filter((each) => names.has(nameOf(each)));
    counted = counted > COMPARED_MAX ? recheck.rows : found.length;
  }
  return { found, rows: counted };
}

const nameOf = ({ environmentId, key, kind }: Difference) => `${kind} ${key} ${environmentId}`;

export const toIdentityFilter = (identities: readonly Pick<Difference, 'environmentId' | 'key'>[]): string =>
  `(environment_id, identity_key) IN (${identities.map(({ environmentId, key }) => `(${quoteText(environmentId)}, unhex('${key}'))`).join(', ')})`;

async function compare(query: QueryRows, { table, where, derived }: TableSlice, filter: string) {
  const stored = `${table.name} WHERE ${where} AND ${filter}`;
  const different = differencesOf(table, { stored, derived: `${derived} AND ${filter}` });
  const rows = await readRows(
    query(`SELECT environment_id, lower(hex(identity_key)), sides, count() OVER () FROM (${different})
      LIMIT ${COMPARED_MAX} ${SETTINGS}`),
  );
  const found = rows.map(([environmentId, key, sides]): Difference => {
    const kind = Number(sides) === 1 ? 'unfounded' : 'missing';
    return { environmentId: String(environmentId), key: String(key), kind };
  });
  return { found, rows: Number(rows[0]?.[3] ?? 0) };
}

/** Waits for the inserts that are running now. */
export const awaitRunningInserts = (query: QueryRows): Promise<void> =>
  awaitInserts(async () => {
    const rows = await readRows(query(`SELECT query_id FROM system.processes WHERE ${IS_INSERT}`));
    return rows.map(([id]) => String(id));
  });

/** Compares the tables of each node, because all rows of an owner are on one node. */
export async function findDrift(
  nodes: readonly QueryRows[],
  onProgress: (line: string) => void,
): Promise<readonly Drift[]> {
  const drifts = new Map(
    DERIVED_TABLES.map(({ name }) => [name, { table: name, missing: 0, unfounded: 0, fault: null as string | null }]),
  );
  for (const query of nodes)
    for (const slice of await listTableSlices(query)) {
      onProgress(`comparing ${slice.name} with events`);
      const drift = drifts.get(slice.table.name)!;
      const { found, rows } = await findDifferences(query, slice).catch((fault: unknown) => {
        drift.fault = fault instanceof Error ? fault.message : String(fault);
        return { found: [], rows: 0 };
      });
      const unfounded = found.filter(({ kind }) => kind === 'unfounded').length;
      drift.unfounded += unfounded;
      drift.missing += rows - unfounded;
    }
  return [...drifts.values()];
}
