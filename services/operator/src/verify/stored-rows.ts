import { type QueryRows, readRows } from '@playline/stores';
import type { CopyRule, Flow } from './flows.ts';
import type { BucketCount, OffsetRange } from './ranges.ts';

export interface PartitionRange extends OffsetRange {
  readonly partition: number;
}

/** Counts of offsets that have more than one row. */
export interface Repeated {
  /** Messages with several raw rows at one offset, of which queries return one. */
  repeatedRecords: number;
  /** Extra rows per message and offset that queries return. */
  doubledRows: number;
  /** Offsets with rows of different messages. */
  overlappingOffsets: number;
  readonly examples: { offset: number; kind: 'doubled' | 'overlapping' }[];
}

type Table = Pick<Flow, 'table' | 'identity' | 'version' | 'copyRules'>;

/** Queries raw rows without deduplication, except for `doubledRows`. */
export interface StoredRows {
  counts(table: Table, ranges: readonly PartitionRange[]): AsyncIterable<BucketCount>;
  /** Returns offsets without a row, in ascending order. */
  missing(table: Table, range: PartitionRange): Promise<OffsetRange[]>;
  repeated(table: Table, range: PartitionRange): Promise<Repeated>;
  /** Returns the highest offset per partition. */
  lastOffsets(table: Table): Promise<ReadonlyMap<number, number>>;
  countFrom(table: Table, from: { partition: number; offset: number }): Promise<number>;
  /** Returns the indexes of the lists that have a row. A list contains the columns of the rule as strings. */
  findCopies(table: Table, rule: CopyRule, lists: readonly (readonly string[])[]): Promise<ReadonlySet<number>>;
}

const EXAMPLES_MAX = 20;

const rangeSql = ({ partition, start, end }: PartitionRange) =>
  `(kafka_partition = ${partition} AND kafka_offset >= ${start} AND kafka_offset < ${end})`;

/** Selects ranges of missing offsets with bitmaps, which use 8 KiB per 65,536 offsets for any number of rows. */
const missingSql = ({ table }: Table, range: PartitionRange) => `
  WITH bitmapToArray(bitmapAndnot(
      bitmapBuild(range(toUInt64(${range.start}), toUInt64(${range.end}))), groupBitmapState(kafka_offset))) AS missing,
    arrayDifference(missing) AS steps
  SELECT arrayFilter((offset, step) -> step != 1, missing, steps),
    arrayFilter((offset, step) -> step != 1, missing, arrayPushBack(arrayPopFront(steps), 0))
  FROM ${table} WHERE ${rangeSql(range)}`;

const repeatedSql = ({ table, identity }: Table, range: PartitionRange) => `
  SELECT kafka_offset, countIf(raw > 1) AS repeated, count() AS identities
  FROM (SELECT kafka_offset, count() AS raw FROM ${table} WHERE ${rangeSql(range)} GROUP BY kafka_offset, ${identity})
  GROUP BY kafka_offset HAVING repeated > 0 OR identities > 1 ORDER BY kafka_offset`;

/**
 * Selects the visible rows per message and offset. FINAL deduplicates rows with the same sorting key; of rows with
 * different keys, the highest version is visible. Restricted to repeated keys, because FINAL would read the whole
 * table.
 */
function visibleSql({ table, identity, version, copyRules }: Table, range: PartitionRange): string {
  const key = copyRules[0]?.columns;
  const repeated = `
    SELECT kafka_offset FROM ${table} WHERE ${rangeSql(range)} GROUP BY kafka_offset, ${identity} HAVING count() > 1`;
  const keys = `SELECT ${key} FROM ${table} WHERE ${rangeSql(range)} AND kafka_offset IN (${repeated})`;
  return `
    SELECT kafka_offset, sum(shown), count() FROM (
      SELECT kafka_offset, countEqual(groupArray(${version}), max(${version})) AS shown
      FROM ${table} FINAL WHERE ${rangeSql(range)} ${key === undefined ? '' : `AND ${key} IN (${keys})`}
      GROUP BY kafka_offset, ${identity} HAVING shown > 1)
    GROUP BY kafka_offset ORDER BY kafka_offset`;
}

/** Selects the lists that have a row. Lists contain only hexadecimal digits, dates and numbers, so quoting is safe. */
const copiesSql = ({ table }: Table, rule: CopyRule, lists: readonly (readonly string[])[]) => {
  const columns = lists[0]!.map((_, index) => `c${index + 1}`);
  const data = lists.map((list, index) => JSON.stringify([String(index), ...list])).join('\n');
  const list = `format(JSONCompactEachRow, 'n UInt32, ${columns.map((name) => `${name} String`).join(', ')}', '${data}')`;
  return `SELECT n FROM ${list} WHERE ${rule.fromText} IN (
    SELECT ${rule.columns} FROM ${table} WHERE ${rule.columns} IN (SELECT ${rule.fromText} FROM ${list}))`;
};

async function readRepeated(query: QueryRows, table: Table, range: PartitionRange): Promise<Repeated> {
  const found: Repeated = { repeatedRecords: 0, doubledRows: 0, overlappingOffsets: 0, examples: [] };
  const addExample = (offset: number, kind: 'doubled' | 'overlapping') => {
    if (found.examples.length < EXAMPLES_MAX) found.examples.push({ offset, kind });
  };
  for await (const row of query(repeatedSql(table, range))) {
    const [offset = 0, repeated = 0, identities = 0] = row.map(Number);
    found.repeatedRecords += repeated;
    if (identities === 1) continue;
    found.overlappingOffsets++;
    addExample(offset, 'overlapping');
  }
  if (found.repeatedRecords === 0) return found;
  // Queried after the raw rows, because a merge in between can only remove repeated rows.
  for await (const row of query(visibleSql(table, range))) {
    const [offset = 0, rows = 0, records = 0] = row.map(Number);
    found.doubledRows += rows - records;
    found.repeatedRecords -= records;
    addExample(offset, 'doubled');
  }
  return found;
}

export function createStoredRows(query: QueryRows, bucketSize: number): StoredRows {
  return {
    async *counts({ table }, ranges) {
      if (ranges.length === 0) return;
      const rows = query(`
        SELECT kafka_partition, intDiv(kafka_offset, ${bucketSize}) AS bucket, count(), groupBitmap(kafka_offset)
        FROM ${table} WHERE ${ranges.map(rangeSql).join(' OR ')} GROUP BY kafka_partition, bucket`);
      for await (const row of rows) {
        const [partition = 0, index = 0, count = 0, offsets = 0] = row.map(Number);
        yield { partition, index, rows: count, offsets };
      }
    },
    async missing(table, range) {
      const [row] = await readRows(query(missingSql(table, range)));
      const [starts, lasts] = row as [string[], string[]];
      return starts.map((start, index) => ({ start: Number(start), end: Number(lasts[index]) + 1 }));
    },
    repeated: (table, range) => readRepeated(query, table, range),
    async lastOffsets({ table }) {
      const rows = await readRows(query(`SELECT kafka_partition, max(kafka_offset) FROM ${table} GROUP BY 1`));
      return new Map(rows.map(([partition, offset]) => [Number(partition), Number(offset)]));
    },
    async countFrom({ table }, { partition, offset }) {
      const sql = `SELECT count() FROM ${table} WHERE kafka_partition = ${partition} AND kafka_offset >= ${offset}`;
      return Number((await readRows(query(sql)))[0]?.[0]);
    },
    async findCopies(table, rule, lists) {
      if (lists.length === 0) return new Set();
      const rows = await readRows(query(copiesSql(table, rule, lists)));
      return new Set(rows.map(([index]) => Number(index)));
    },
  };
}
