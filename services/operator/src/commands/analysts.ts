import { randomInt } from 'node:crypto';
import { type ClickHouseAccount, ClickHouseFault } from '@playline/stores';
import {
  ALL,
  type AnalystAccount,
  claim,
  createBySql,
  dropAccount,
  isGivenOut,
  listAccounts,
  type Revealed,
  refusalOfGrant,
  setGrant,
  staysWhenDropped,
} from '../analysts/accounts.ts';
import { type AnalystPool, type PoolPlace, readPool, readsRawIds } from '../analysts/pool.ts';
import { type Ask, createAsk } from '../analysts/statements.ts';
import { awaitStore } from '../await-store.ts';
import {
  type Command,
  EXIT,
  type ExitCode,
  isMeant,
  parseOptions,
  type Terminal,
  textOf,
  UsageError,
  type Values,
  wordOf,
} from '../command.ts';
import { environmentOf } from '../identity/subject.ts';

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

/** What an action of the command works with. */
interface AnalystsWork {
  readonly clickhouse: ClickHouseAccount;
  readonly pool: () => AnalystPool;
  readonly ask: Ask;
  readonly values: Values;
  readonly terminal: Terminal;
}

const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** The value of `--account`. @throws UsageError */
function accountOf(values: Values): string {
  const account = textOf(values, 'account') ?? '';
  if (!ACCOUNT.test(account)) throw new UsageError('--account: expected the name of an account, such as analyst_1');
  return account;
}

/** The environment of the grant: `--environment`, or all. @throws UsageError */
function grantedEnvironmentOf(values: Values): string {
  if (values['all-environments'] !== true) return environmentOf(values);
  if (values.environment !== undefined) throw new UsageError('--environment or --all-environments, not both');
  return ALL;
}

const nameOf = (environmentId: string) => (environmentId === ALL ? 'all environments' : environmentId);

/** Claims a free account, grants it an environment, and shows its password once. */
async function create(work: AnalystsWork): Promise<ExitCode> {
  const { ask, values, terminal } = work;
  const [environmentId, rawIds] = [grantedEnvironmentOf(values), values['raw-ids'] === true];
  await noteUnknown(work, environmentId);
  const found = (await createBySql(ask, rawIds)) ?? (await takeFromPool(work, rawIds));
  await setGrant(ask, found.account, { environmentId, revoked: false });
  const line = { account: found.account, environments: [environmentId], rawIds, password: found.password };
  const text = `account ${found.account} of ${nameOf(environmentId)}, ${rawIds ? 'with' : 'without'} raw ids; its password, shown this once:`;
  for (const shown of values.json === true ? [JSON.stringify(line)] : [text, found.password]) terminal.result(shown);
  return EXIT.ok;
}

async function takeFromPool({ clickhouse, pool, ask }: AnalystsWork, rawIds: boolean): Promise<Revealed> {
  const accounts = pool().accounts.filter(({ account }) => readsRawIds(account) === rawIds);
  if (accounts.length === 0)
    throw new Error(
      'this ClickHouse makes no accounts by SQL, and nobody told the passwords of those of users.xml: run it where the stack ' +
        'runs, or set CLICKHOUSE_ANALYST_1_PASSWORD and so on as ClickHouse has them',
    );
  let left: readonly Revealed[] = accounts;
  while (left.length > 0) {
    const [each, ...others] = left as [Revealed, ...Revealed[]];
    left = others;
    if (await isGivenOut(ask, each)) continue;
    // The server may have started with another password: then nobody could log in with this one.
    if (!(await canLogIn(clickhouse, each))) continue;
    if (await claim(ask, each)) return each;
    // In random order, so that two commands that blocked each other do not meet at every following account.
    left = inRandomOrder(others);
  }
  throw new Error(
    `all ${accounts.length} accounts ${rawIds ? 'with' : 'without'} raw ids are given out, or wait for the next start: ` +
      'drop one that nobody needs (npm run analysts -- list, drop), then npm run down and npm run up',
  );
}

function inRandomOrder<T>(values: readonly T[]): T[] {
  const drawn = values.map((value) => ({ value, at: randomInt(2 ** 32) }));
  return drawn.toSorted((a, b) => a.at - b.at).map(({ value }) => value);
}

async function canLogIn(
  { onFault: _, ...clickhouse }: ClickHouseAccount,
  { account, password }: Revealed,
): Promise<boolean> {
  const ask = createAsk({ ...clickhouse, user: account, password });
  return ask('SELECT 1').then(
    () => true,
    () => false,
  );
}

/** Grants an account another environment. */
async function grant({ ask, values, terminal, ...rest }: AnalystsWork): Promise<ExitCode> {
  const [account, environmentId] = [accountOf(values), grantedEnvironmentOf(values)];
  const refusal = await refusalOfGrant(ask, account);
  if (refusal !== null) throw new Error(refusal);
  const before = await findAccount(ask, account);
  await noteUnknown({ ask, values, terminal, ...rest }, environmentId);
  if (!before.environments.includes(environmentId)) await setGrant(ask, account, { environmentId, revoked: false });
  tell(await findAccount(ask, account), { values, terminal });
  return EXIT.ok;
}

async function list({ ask, values, terminal }: AnalystsWork): Promise<ExitCode> {
  for (const account of await listAccounts(ask))
    if (account.environments.length > 0) tell(account, { values, terminal });
  return EXIT.ok;
}

/** Revokes all grants of an account. */
async function drop({ ask, pool, values, terminal }: AnalystsWork): Promise<ExitCode> {
  const account = accountOf(values);
  const { environments } = await findAccount(ask, account);
  const what = `${account} reads ${environments.map(nameOf).join(', ') || 'nothing'}. From its next question on it sees nothing.`;
  if (!(await isMeant(what, values, terminal))) {
    terminal.progress('nothing was changed');
    return EXIT.failed;
  }
  const stays = await staysWhenDropped(ask, account);
  await dropAccount(ask, account);
  const isOfPool = pool().accounts.some((each) => each.account === account);
  const next = stays ? (isOfPool ? pool().renew(account) : '') : 'The account is gone.';
  terminal.result(
    values.json === true
      ? JSON.stringify({ account, environments: [] })
      : `${account} sees nothing any more. ${next}`.trim(),
  );
  return EXIT.ok;
}

async function findAccount(ask: Ask, account: string): Promise<AnalystAccount> {
  const found = (await listAccounts(ask)).find((each) => each.account === account);
  if (found !== undefined) return found;
  throw new Error(`there is no account ${account} for analysts: npm run analysts -- list shows them`);
}

/** An unknown environment may be new, so it is accepted with a note. */
async function noteUnknown(
  { ask, terminal }: Pick<AnalystsWork, 'ask' | 'terminal' | 'values'>,
  environmentId: string,
) {
  if (environmentId === ALL) return;
  const rows = await ask('SELECT 1 FROM events WHERE environment_id = {environment: String} LIMIT 1', {
    environment: environmentId,
  });
  if (rows.length === 0) terminal.progress(`no event of ${environmentId} is stored yet: is the name right?`);
}

function tell(account: AnalystAccount, { values, terminal }: Pick<AnalystsWork, 'values' | 'terminal'>): void {
  const { environments, rawIds, since } = account;
  const may = `${environments.map(nameOf).join(', ')}  ${rawIds ? 'with' : 'without'} raw ids`;
  terminal.result(values.json === true ? JSON.stringify(account) : `${account.account}  ${may}  since ${since}`);
}
