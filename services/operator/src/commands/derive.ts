import {
  type ClickHouseAccount,
  createQueryRows,
  onEachNode,
  overAllNodes,
  type QueryRows,
  sendStatement,
} from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
import { type CreateCommand, command } from '../command.ts';
import {
  awaitRunningInserts,
  findDifferences,
  listTableSlices,
  type TableSlice,
  toIdentityFilter,
} from '../derive/drift.ts';
import { findCountDrift, findDayDrift, RECOUNT, RECOUNT_DAYS } from '../verify/counts.ts';

const HELP = `
Repairs the tables identity_days, identities and session_days, on which persons, person_days, sessions and timelines are
based: inserts missing rows and deletes rows that have no event. If the overview's counts of the last day or the numbers
of events per day are wrong, the event writer counts them again. To check whether a repair is needed, run npm run
verify. The command is safe to repeat, and safe to run during writes and erasures.

Requires CLICKHOUSE_URL with an account that can write, or a local stack.`;

const STATEMENT_MAX_MS = 3_600_000;

export const createDeriveCommand =
  ({ clickhouse }: { readonly clickhouse: () => ClickHouseAccount }): CreateCommand =>
  (terminal) =>
    command('derive', 'repair the tables that are derived from events')
      .addHelpText('after', HELP)
      .action(async () => {
        const account = clickhouse();
        const query = createQueryRows(account);
        await awaitClickHouse(query);
        const run = (statement: string) => runStatement(account, statement);
        let repaired = 0;
        for (const node of onEachNode(account)) {
          const deps = {
            query: createQueryRows(node),
            run: (statement: string) => runStatement(node, statement),
            onProgress: terminal.progress,
          };
          for (const slice of await listTableSlices(deps.query)) {
            terminal.progress(`comparing ${slice.name} with events`);
            repaired += await repairSlice(deps, slice);
          }
        }
        const counts = await findCountDrift(query, terminal.progress, `${overAllNodes(account).database}.`);
        const wrong = counts.missing + counts.unfounded;
        if (wrong > 0) {
          terminal.progress(
            `event_counts: ${wrong} counts differ from events; the event writer counts the last day again`,
          );
          await run(RECOUNT);
          repaired += wrong;
        }
        for (const node of onEachNode(account)) {
          const days = await findDayDrift([createQueryRows(node)], terminal.progress);
          if (days.fault !== null) throw new Error(days.fault);
          if (days.missing + days.unfounded === 0) continue;
          terminal.progress('event_days: numbers differ from events; the event writer counts all days again');
          await runStatement(node, RECOUNT_DAYS);
          repaired += days.missing + days.unfounded;
        }
        terminal.result(
          repaired === 0 ? 'nothing to repair: the derived tables match the events' : `${repaired} rows repaired`,
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
  readonly run: (statement: string) => Promise<void>;
  readonly onProgress: (line: string) => void;
}

/** Each round repairs up to a thousand unfounded rows. */
const ROUNDS_MAX = 10_000;

/**
 * Inserts missing rows. For an identity with unfounded rows, deletes and re-derives all rows.
 * @returns the number of rows that differed
 * @throws Error when the tables still differ after the last round
 */
async function repairSlice({ query, run, onProgress }: RepairOptions, slice: TableSlice): Promise<number> {
  const { table, where, derived, name } = slice;
  let repaired = 0;
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const { found, rows } = await findDifferences(query, slice);
    if (found.length === 0) return repaired;
    onProgress(`${name}: ${rows} rows differ from events`);
    repaired = Math.max(repaired, rows);
    const unfounded = found.filter(({ kind }) => kind === 'unfounded');
    if (unfounded.length === 0) {
      await run(`INSERT INTO ${table.name} SELECT * FROM ${derived}`);
      continue;
    }
    const identityFilter = toIdentityFilter(unfounded);
    await run(`DELETE FROM ${table.name} WHERE ${where} AND ${identityFilter}`);
    // A concurrent insert may have written derived rows before its events became visible.
    await awaitRunningInserts(query);
    await run(`INSERT INTO ${table.name} SELECT * FROM ${derived} AND ${identityFilter}`);
  }
  throw new Error(`${name} still differs from events: run the command again`);
}
