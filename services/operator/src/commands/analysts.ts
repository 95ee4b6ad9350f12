import { type ClickHouseAccount, ClickHouseFault } from '@playline/stores';
import { type AnalystPool, type PoolPlace, readPool } from '../analysts/pool.ts';
import { type Ask, createAsk } from '../analysts/statements.ts';
import { type AnalystsWork, accountOf, create, drop, grant, grantedEnvironmentOf, list } from '../analysts/words.ts';
import { awaitStore } from '../await-store.ts';
import {
  type Command,
  type ExitCode,
  parseOptions,
  type Terminal,
  UsageError,
  type Values,
  wordOf,
} from '../command.ts';

const HELP = `usage: operator analysts create --environment E [--raw-ids] [--json]
       operator analysts grant  --account A --environment E [--json]
       operator analysts list   [--json]
       operator analysts drop   --account A [--yes] [--json]        (npm run analysts -- …)

Accounts of ClickHouse for people who ask questions. They read views alone, and of those the rows of their environments.

create  takes an account that nobody has, lets it read an environment, and prints its password, this once
        --raw-ids   it may read ids, pages, properties and traits as clients sent them: they may name somebody
grant   lets it read one environment more, from its next question on
list    accounts that may read something: environments, raw ids, since when
drop    takes everything away, at once; asks first, or takes --yes. To take one environment away, drop and create

  --environment production, development, or the id of an environment as tables have it: demo-production
  --project demo
  --all-environments   instead of --environment: those that there are, and those to come
  --json               JSON, one a line

Needs CLICKHOUSE_URL with the operator's account, or a stack that runs here (.playline/stack.json). Where ClickHouse makes
accounts by SQL, create does; else it gives out those of users.xml, whose passwords the stack has (.playline/secrets.json),
or the environment: CLICKHOUSE_ANALYST_1_PASSWORD and so on.

Exit code: 0 done, 1 it failed: no account is free or there is none of that name, 2 wrong words, 3 ClickHouse does not answer.`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const OF_ENVIRONMENT = {
  environment: text,
  'all-environments': flag,
  json: flag,
  project: { type: 'string', default: 'demo' },
} as const;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  readonly act: (work: AnalystsWork) => Promise<ExitCode>;
  /** Checks the arguments before any request. @throws UsageError */
  readonly check: (values: Values) => unknown;
}

const WORDS: Readonly<Record<string, Word>> = {
  create: { options: { ...OF_ENVIRONMENT, 'raw-ids': flag }, act: create, check: grantedEnvironmentOf },
  grant: {
    options: { ...OF_ENVIRONMENT, account: text },
    act: grant,
    check: (values) => [accountOf(values), grantedEnvironmentOf(values)],
  },
  list: { options: { json: flag }, act: list, check: () => {} },
  drop: { options: { account: text, yes: flag, json: flag }, act: drop, check: accountOf },
};

/** The row policies of users.xml are for this database; in another one every account would be refused. */
const DATABASE = 'playline';

export interface AnalystsContext extends Omit<PoolPlace, 'url'> {
  readonly clickhouse: () => ClickHouseAccount;
}

export function createAnalystsCommand({ clickhouse: addressOf, folder, environment }: AnalystsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values } = parseOptions(rest, word.options);
    word.check(values);
    const clickhouse = addressOf();
    if (clickhouse.database !== DATABASE)
      throw new UsageError(
        `CLICKHOUSE_DATABASE is ${clickhouse.database}: accounts for analysts read ${DATABASE} alone (users.xml)`,
      );
    const ask = createAsk(clickhouse);
    await awaitStore('ClickHouse', () => answers(ask));
    const pool = (): AnalystPool => readPool({ folder, url: clickhouse.url, environment });
    return word.act({ clickhouse, pool, ask, values, terminal });
  };
  const summary = 'create, grant, list and drop accounts for people who ask questions';
  return { name: 'analysts', summary, help: HELP, run };
}

/** Whether the server answers; a refusal is an answer, and the following query reports it. */
async function answers(ask: Ask): Promise<boolean> {
  try {
    await ask('SELECT 1');
    return true;
  } catch (fault) {
    return fault instanceof ClickHouseFault;
  }
}
