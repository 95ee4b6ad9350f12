import type { QueryRows } from '@playline/runtime';
import { awaitInserts, findDifferences, listSpans, ofIdentities, type Span } from './drift.ts';

export interface MendOptions {
  readonly query: QueryRows;
  /** Runs a statement to its end. */
  readonly run: (statement: string) => Promise<void>;
  readonly onProgress: (line: string) => void;
}

/** Rounds about one part before it is a fault: each mends a thousand rows that no event says. */
const ROUNDS_MAX = 10_000;

/**
 * Makes derived tables say what events say: fills in what is missing, and takes away what no event says, together with all
 * else of that identity, which is derived again. Writers and erasures may run. Killed half-way it is simply run again.
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
    // Of an insert that ran meanwhile, what it derived may be deleted and its events may not have been seen.
    await awaitInserts(query);
    await run(`INSERT INTO ${table.name} SELECT * FROM ${derived} AND ${ofThem}`);
  }
  throw new Error(`${name} still differs from events`);
}
