import type { Engine } from './engine.ts';
import { PREFIX, type PropertyColumn, readComment } from './property-column.ts';

/** A property column of `events`. */
export interface StoredColumn {
  /** Without the prefix. */
  readonly name: string;
  /** ClickHouse type. */
  readonly type: string;
  /** Null when it was added by other means. */
  readonly column: PropertyColumn | null;
}

/** Backfill progress of one partition of `events`. */
export interface MonthParts {
  readonly month: string;
  readonly parts: number;
  /** Parts without the column, whose value is computed at each read. */
  readonly remaining: number;
  readonly bytes: number;
  /** Small parts, which store all columns in one file and report no bytes. */
  readonly unmeasured: number;
}

/** Sorted by name. */
export async function readColumns(engine: Engine): Promise<StoredColumn[]> {
  const rows = await engine.read(`SELECT name, type, comment FROM system.columns
    WHERE database = currentDatabase() AND table = 'events' AND startsWith(name, '${PREFIX}') ORDER BY name`);
  return rows.map(([column, type, comment]) => {
    const name = String(column).slice(PREFIX.length);
    return { name, type: String(type), column: readComment(name, String(comment)) };
  });
}

/** The newest month first. @param column with its prefix */
export async function readMonths(engine: Engine, column: string): Promise<MonthParts[]> {
  const rows = await engine.read(`SELECT partition_id, count(), countIf(NOT has), sum(bytes), countIf(has AND bytes = 0)
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
  const sum = (of: (month: MonthParts) => number) => months.reduce((total, month) => total + of(month), 0);
  return {
    parts: sum(({ parts }) => parts),
    remaining: sum(({ remaining }) => remaining),
    bytes: sum(({ bytes }) => bytes),
    unmeasured: sum(({ unmeasured }) => unmeasured),
  };
}
