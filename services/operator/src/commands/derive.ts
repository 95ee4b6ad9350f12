import { askClickHouse, type ClickHouseAccount, createQueryRows } from '@playline/stores';
import { awaitClickHouse } from '../await-store.ts';
import { type Command, EXIT, parseOptions } from '../command.ts';
import { mendDerived } from '../derive/mend.ts';

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
