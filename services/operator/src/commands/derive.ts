import { askClickHouse, type ClickHouseAccount, createQueryRows, type QueryRows } from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
import { type Command, EXIT, parseOptions } from '../command.ts';
import { awaitInserts, findDifferences, listSpans, ofIdentities, type Span } from '../derive/drift.ts';

const HELP = `usage: operator derive          (npm run derive)

Makes the tables that follow from events say what events say: identity_days and identities, which persons, person_days and
timelines are read from. What is missing is filled in; what no event says is taken away. npm run verify tells whether there
is anything to do. May run beside writers and erasures, and be ended and begun again at any time.

Needs CLICKHOUSE_URL with an account that may write, or a stack that runs here (.playline/stack.json).

Exit code: 0 done, 1 it failed, 2 wrong words, 3 ClickHouse does not answer.`;

/** Enough to derive a part of a table. */
const STATEMENT_MAX_MS = 3_600_000;

export function createDeriveCommand({ clickhouse }: { readonly clickhouse: () => ClickHouseAccount }): Command {
  return {
    name: 'derive',
    summary: 'make the tables that follow from events anew where they differ from them',
    help: HELP,
    async run(args, terminal) {
      parseOptions(args, {});
      const account = clickhouse();
      const query = createQueryRows(account);
      await awaitClickHouse(query);
      const run = (statement: string) => runStatement(account, statement);
      const mended = await mendDerived({ query, run, onProgress: terminal.progress });
      terminal.result(
        mended === 0 ? 'nothing to do: all that is derived says what events say' : `${mended} rows were derived again`,
      );
      return EXIT.ok;
    },
  };
}

async function runStatement(account: ClickHouseAccount, statement: string): Promise<void> {
  const settings = {
    wait_end_of_query: '1',
    max_partitions_per_insert_block: '10000',
    max_bytes_before_external_group_by: '500000000',
  };
  const response = await askClickHouse(account, { body: statement, settings, deadlineMs: STATEMENT_MAX_MS });
  await response.text();
}

interface MendOptions {
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
async function mendDerived({ query, run, onProgress }: MendOptions): Promise<number> {
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
