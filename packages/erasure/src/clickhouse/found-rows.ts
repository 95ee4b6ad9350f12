import type { FoundRows } from '../rows.ts';

/** A line of an answer about rows that were found. */
export interface FoundRow {
  readonly column: string;
  readonly how: FoundRows['as'];
  readonly environment_id: string;
  readonly key: string;
  readonly rows: number;
}

export const toFound = (table: string, rows: readonly FoundRow[]): FoundRows[] =>
  rows.map(({ column, how: as, environment_id: environmentId, key, rows }) => {
    return { table, column, as, environmentId, key: Buffer.from(key, 'hex'), rows };
  });
