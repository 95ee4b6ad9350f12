import { type ClickHouseAccount, createQueryRows, type QueryRows, sendStatement } from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
import { type CreateCommand, command } from '../command.ts';
import { awaitInserts, findDifferences, listSpans, ofIdentities, type Span } from '../derive/drift.ts';

const HELP = `
The tables are identity_days and identities, from which persons, person_days and timelines are read. Missing rows are
added, and rows of no event are deleted. npm run verify shows whether there is anything to do. May run beside writers and
erasures, and can be interrupted and repeated.

Needs CLICKHOUSE_URL with an account that may write, or a stack that runs here (.playline/stack.json).`;

/** Enough to derive a part of a table. */
const STATEMENT_MAX_MS = 3_600_000;

export const createDeriveCommand =
  ({ clickhouse }: { readonly clickhouse: () => ClickHouseAccount }): CreateCommand =>
  (terminal) =>
    command('derive', 'repair the tables that follow from events where they differ from events')
      .addHelpText('after', HELP)
      .action(async () => {
        const account = clickhouse();
        const query = createQueryRows(account);
        await awaitClickHouse(query);
        const run = (statement: string) => runStatement(account, statement);
        const repaired = await repairDerived({ query, run, onProgress: terminal.progress });
        terminal.result(
          repaired === 0
            ? 'nothing to do: the derived tables agree with the events'
            : `${repaired} rows were derived again`,
        );
      });

async function runStatement(account: ClickHouseAccount, statement: string): Promise<void> {
  const settings = {
    wait_end_of_query: '1',
    max_partitions_per_insert_block: '10000',
    max_bytes_before_external_group_by: '500000000',
  };
  const response = await sendStatement(account, { body: statement, settings, deadlineMs: STATEMENT_MAX_MS });
  await response.text();
}

interface RepairOptions {
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
async function repairDerived({ query, run, onProgress }: RepairOptions): Promise<number> {
  let repaired = 0;
  for (const span of await listSpans(query)) {
    onProgress(`comparing ${span.name} with events`);
    repaired += await repairSpan({ query, run, onProgress }, span);
  }
  return repaired;
}

async function repairSpan({ query, run, onProgress }: RepairOptions, span: Span): Promise<number> {
  const { table, where, derived, name } = span;
  let repaired = 0;
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const { found, rows } = await findDifferences(query, span);
    if (found.length === 0) return repaired;
    onProgress(`${name}: ${rows} rows differ from events`);
    repaired = Math.max(repaired, rows);
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
