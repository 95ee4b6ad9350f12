import type { QueryRows } from '@playline/stores';
import { awaitInserts, findDifferences, listSpans, ofIdentities, type Span } from './drift.ts';

export interface MendOptions {
  readonly query: QueryRows;
  /** Runs a statement to its end. */
  readonly run: (statement: string) => Promise<void>;
  readonly onProgress: (line: string) => void;
}

/** Maximum rounds for one part: each repairs a thousand unfounded rows. */
const ROUNDS_MAX = 10_000;

/**
 * Makes derived tables equal to the events: adds missing rows; deletes unfounded ones with all other rows of that
 * identity, which is derived again. Writers and erasures may run. After a kill, run it again.
 * @returns rows that were missing or unfounded
 * @throws Error when a part stays different
 */
export async function mendDerived({ query, run, onProgress }: MendOptions): Promise<number> {
  let mended = 0;
  for (const span of await listSpans(query)) {
    onProgress(`comparing ${span.name} with events`);
    mended += await mendSpan({ query, run, onProgress }, span);
  }
  return mended;
}

async function mendSpan({ query, run, onProgress }: MendOptions, span: Span): Promise<number> {
  const { table, where, derived, name } = span;
  let mended = 0;
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const { found, rows } = await findDifferences(query, span);
    if (found.length === 0) return mended;
    onProgress(`${name}: ${rows} rows differ from events`);
    mended = Math.max(mended, rows);
    const unfounded = found.filter(({ kind }) => kind === 'unfounded');
    if (unfounded.length === 0) {
      await run(`INSERT INTO ${table.name} SELECT * FROM ${derived}`);
      continue;
    }
    const ofThem = ofIdentities(unfounded);
    await run(`DELETE FROM ${table.name} WHERE ${where} AND ${ofThem}`);
    // Rows of an insert that ran meanwhile may have been deleted, and its events not seen yet.
    await awaitInserts(query);
    await run(`INSERT INTO ${table.name} SELECT * FROM ${derived} AND ${ofThem}`);
  }
  throw new Error(`${name} still differs from events`);
}
