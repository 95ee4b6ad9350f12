import { randomInt } from 'node:crypto';
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { FIRST_PROJECT } from '@playline/access-keys';
import { type ClickHouseAccount, ClickHouseFault } from '@playline/stores';
import {
  ALL,
  type AnalystAccount,
  type Credentials,
  claim,
  createBySql,
  createRunStatement,
  dropAccount,
  findGrantRefusal,
  isAssigned,
  isFromUsersXml,
  listAccounts,
  type PoolOptions,
  type RunStatement,
  readPool,
  readsRawIds,
  setGrant,
} from '../analysts/accounts.ts';
import { awaitStore } from '../await-store.ts';
import {
  type CreateCommand,
  command,
  confirm,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
  UsageError,
  yesOption,
} from '../command.ts';
import { environmentOf } from '../identity/subject.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';

const ABOUT = `
ClickHouse accounts for analysts. They read only views, restricted to the rows of their environments.

Needs CLICKHOUSE_URL with the operator's account, or a local stack. If ClickHouse accepts accounts by SQL, create makes one.
Otherwise it assigns an account of users.xml, whose passwords are those of the local stack or of the environment
(CLICKHOUSE_ANALYST_1_PASSWORD and so on).`;

/** The row policies of users.xml apply to this database only. */
const DATABASE = 'playline';

export interface AnalystsContext extends Omit<PoolOptions, 'url'> {
  readonly clickhouse: () => ClickHouseAccount;
}

const account = () =>
  new Option('--account <name>', 'name of the account, as list shows it').argParser(parseAccount).makeOptionMandatory();

const granting = (name: string, description: string) =>
  jsonCommand(name, description)
    .option('--environment <name>', 'production, development, or an environment id as in tables: demo-production')
    .option('--project <id>', 'project of the environment', FIRST_PROJECT)
    .addOption(
      new Option('--all-environments', 'instead of --environment: all, future ones included').conflicts('environment'),
    );

export const createAnalystsCommand =
  (context: AnalystsContext): CreateCommand =>
  (terminal) =>
    command('analysts', 'create, grant, list and drop ClickHouse accounts for analysts')
      .addCommand(
        granting('create', 'assign a free account to an environment and print its password once')
          .option('--raw-ids', 'let it read ids, pages, properties and traits as sent, which may identify people')
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await create(await openWork(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        granting('grant', 'let an account read another environment, effective with its next query')
          .addOption(account())
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await grant(await openWork(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        jsonCommand('list', 'list accounts that may read something: environments, raw ids, first grant').action(
          async (options) => list(await openWork(context, terminal), options),
        ),
      )
      .addCommand(
        jsonCommand('drop', 'revoke all grants of an account, effective immediately')
          .addOption(account())
          .addOption(yesOption())
          .addHelpText('after', '\nTo revoke a single environment, drop the account and create another one.')
          .action(async (options) => drop(await openWork(context, terminal), options)),
      )
      .addHelpText('after', ABOUT);

/** @throws UsageError for another database; UnreachableError when ClickHouse does not answer */
async function openWork({ clickhouse: accountOf, folder, environment }: AnalystsContext, terminal: Terminal) {
  const clickhouse = accountOf();
  if (clickhouse.database !== DATABASE)
    throw new UsageError(
      `CLICKHOUSE_DATABASE is ${clickhouse.database}: accounts for analysts can read only ${DATABASE} (users.xml)`,
    );
  const run = createRunStatement(clickhouse);
  // An error of the server is an answer too; the next query reports it.
  const isReachable = () =>
    run('SELECT 1').then(
      () => true,
      (fault: unknown) => fault instanceof ClickHouseFault,
    );
  await awaitStore('ClickHouse', isReachable);
  const pool = () => readPool({ folder, url: clickhouse.url, environment });
  return { clickhouse, pool, run, terminal };
}

type Work = Awaited<ReturnType<typeof openWork>>;

interface GrantOptions extends JsonOption {
  readonly environmentId: string;
}

const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

function parseAccount(text: string): string {
  if (!ACCOUNT.test(text)) throw new InvalidArgumentError('Expected the name of an account, such as analyst_1.');
  return text;
}

function grantedEnvironmentOf({
  environment,
  project,
  allEnvironments = false,
}: EnvironmentOptions & { readonly allEnvironments?: boolean | undefined }): string {
  return allEnvironments ? ALL : environmentOf({ environment, project });
}

const nameOf = (environmentId: string) => (environmentId === ALL ? 'all environments' : environmentId);

async function create(
  work: Work,
  { environmentId, rawIds = false, json }: GrantOptions & { readonly rawIds?: boolean | undefined },
): Promise<void> {
  const { run, terminal } = work;
  await noteUnknown(work, environmentId);
  const found = (await createBySql(run, rawIds)) ?? (await takeFromPool(work, rawIds));
  await setGrant(run, found.account, { environmentId, revoked: false });
  const line = { account: found.account, environments: [environmentId], rawIds, password: found.password };
  const text = `account ${found.account} for ${nameOf(environmentId)}, ${rawIds ? 'with' : 'without'} raw ids; password, shown once:`;
  printResult(terminal, { json }, line, [text, found.password]);
}

async function takeFromPool({ clickhouse, pool, run }: Work, rawIds: boolean): Promise<Credentials> {
  const accounts = pool().accounts.filter(({ account }) => readsRawIds(account) === rawIds);
  if (accounts.length === 0)
    throw new Error(
      'this ClickHouse accepts no accounts by SQL, and the passwords of users.xml are unknown: run the command where the ' +
        'stack runs, or set CLICKHOUSE_ANALYST_1_PASSWORD and so on as for ClickHouse',
    );
  let left: readonly Credentials[] = accounts;
  while (left.length > 0) {
    const [each, ...others] = left as [Credentials, ...Credentials[]];
    left = others;
    if (await isAssigned(run, each)) continue;
    // The server may have started with another password.
    if (!(await canLogIn(clickhouse, each))) continue;
    if (await claim(run, each)) return each;
    // Random order, so that two commands that blocked each other do not collide again.
    left = inRandomOrder(others);
  }
  throw new Error(
    `all ${accounts.length} accounts ${rawIds ? 'with' : 'without'} raw ids are assigned, or wait for the next start: ` +
      'drop an unused one (npm run analysts -- list, drop), then npm run down and npm run up',
  );
}

function inRandomOrder<T>(values: readonly T[]): T[] {
  const drawn = values.map((value) => ({ value, at: randomInt(2 ** 32) }));
  return drawn.toSorted((a, b) => a.at - b.at).map(({ value }) => value);
}

async function canLogIn({ onFault: _, ...clickhouse }: ClickHouseAccount, { account, password }: Credentials) {
  const run = createRunStatement({ ...clickhouse, user: account, password });
  return run('SELECT 1').then(
    () => true,
    () => false,
  );
}

async function grant(
  { run, terminal }: Work,
  { account: name, environmentId, ...options }: GrantOptions & { readonly account: string },
): Promise<void> {
  const refusal = await findGrantRefusal(run, name);
  if (refusal !== null) throw new Error(refusal);
  const before = await findAccount(run, name);
  await noteUnknown({ run, terminal }, environmentId);
  if (!before.environments.includes(environmentId)) await setGrant(run, name, { environmentId, revoked: false });
  print(await findAccount(run, name), options, terminal);
}

async function list({ run, terminal }: Work, options: JsonOption): Promise<void> {
  for (const each of await listAccounts(run)) if (each.environments.length > 0) print(each, options, terminal);
}

interface DropOptions extends JsonOption {
  readonly account: string;
  readonly yes?: boolean | undefined;
}
async function drop({ run, pool, terminal }: Work, { account: name, ...options }: DropOptions): Promise<void> {
  const { environments } = await findAccount(run, name);
  const effect = `${name} reads ${environments.map(nameOf).join(', ') || 'nothing'}. From its next query it reads nothing.`;
  await confirm(effect, options, terminal);
  const stays = await isFromUsersXml(run, name);
  await dropAccount(run, name);
  const isOfPool = pool().accounts.some((each) => each.account === name);
  const next = stays ? (isOfPool ? pool().renewPassword(name) : '') : 'The account is gone.';
  printResult(terminal, options, { account: name, environments: [] }, `${name} has no grants. ${next}`.trim());
}

async function findAccount(run: RunStatement, account: string): Promise<AnalystAccount> {
  const found = (await listAccounts(run)).find((each) => each.account === account);
  if (found !== undefined) return found;
  throw new Error(`there is no account ${account} for analysts: npm run analysts -- list shows all`);
}

/** An unknown environment may be new, so it is accepted with a warning. */
async function noteUnknown({ run, terminal }: Pick<Work, 'run' | 'terminal'>, environmentId: string) {
  if (environmentId === ALL) return;
  const known = 'SELECT 1 FROM events WHERE environment_id = {environment: String} LIMIT 1';
  if ((await run(known, { environment: environmentId })).length === 0)
    terminal.progress(`no event of ${environmentId} is stored yet: check the name`);
}

function print(analyst: AnalystAccount, options: JsonOption, terminal: Terminal): void {
  const { account, environments, rawIds, since } = analyst;
  const rights = `${environments.map(nameOf).join(', ')}  ${rawIds ? 'with' : 'without'} raw ids`;
  printResult(terminal, options, analyst, `${account}  ${rights}  since ${since}`);
}
