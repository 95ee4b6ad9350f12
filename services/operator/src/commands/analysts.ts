import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import {
  ALL_ENVIRONMENTS,
  type AnalystAccount,
  assignAnalyst,
  createRunStatement,
  dropAnalyst,
  FIRST_PROJECT,
  findGrantRefusal,
  isAnalystFromUsersXml,
  listAnalysts,
  NoFreeAccount,
  type RunStatement,
  setGrant,
} from '@playline/access-keys';
import { type ClickHouseAccount, ClickHouseFault } from '@playline/stores';
import { type PoolOptions, readPool } from '../analysts/pool.ts';
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
An analyst account can read only views, restricted to the rows of the environments that it has been granted.

If ClickHouse allows accounts to be created with SQL, create adds an account. Otherwise it assigns an account from
users.xml; passwords are read from the local stack or from CLICKHOUSE_ANALYST_1_PASSWORD and so on.

Members create accounts on the Connect page of the portal. Their environments follow the member's role, so grant refuses
these accounts. list shows them, and drop revokes them.

Requires CLICKHOUSE_URL with the operator account, or a local stack.`;

/** The row policies of users.xml apply to this database only. */
const DATABASE = 'playline';

export interface AnalystsContext extends Omit<PoolOptions, 'url'> {
  readonly clickhouse: () => ClickHouseAccount;
}

const account = () =>
  new Option('--account <name>', 'account name, as printed by list').argParser(parseAccount).makeOptionMandatory();

const grantCommand = (name: string, description: string) =>
  jsonCommand(name, description)
    .option('--environment <name>', 'environment name or id, such as production or demo-production')
    .option('--project <id>', 'project id', FIRST_PROJECT)
    .addOption(
      new Option('--all-environments', 'grant access to all current and future environments').conflicts('environment'),
    );

export const createAnalystsCommand =
  (context: AnalystsContext): CreateCommand =>
  (terminal) =>
    command('analysts', 'manage ClickHouse accounts for analysts')
      .addCommand(
        grantCommand('create', 'create an account that can read an environment, and print its password once')
          .option('--raw-ids', 'also grant access to raw ids, pages, properties and traits, which may identify people')
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await create(await prepareDeps(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        grantCommand('grant', 'grant an account access to another environment')
          .addOption(account())
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await grant(await prepareDeps(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        jsonCommand('list', 'list accounts with their environments and raw-id access').action(async (options) =>
          list(await prepareDeps(context, terminal), options),
        ),
      )
      .addCommand(
        jsonCommand('drop', "revoke all of an account's grants")
          .addOption(account())
          .addOption(yesOption())
          .addHelpText('after', '\nTo revoke access to one environment, drop the account and create a new account.')
          .action(async (options) => drop(await prepareDeps(context, terminal), options)),
      )
      .addHelpText('after', ABOUT);

/** @throws UsageError for a database other than playline; UnreachableError when ClickHouse does not respond */
async function prepareDeps({ clickhouse: accountOf, folder, environment }: AnalystsContext, terminal: Terminal) {
  const clickhouse = accountOf();
  if (clickhouse.database !== DATABASE)
    throw new UsageError(
      `CLICKHOUSE_DATABASE is ${clickhouse.database}, but users.xml lets analysts read only the database ${DATABASE}`,
    );
  const run = createRunStatement(clickhouse);
  // An error response also shows that ClickHouse is reachable. The next query reports the error.
  const isReachable = () =>
    run('SELECT 1').then(
      () => true,
      (fault: unknown) => fault instanceof ClickHouseFault,
    );
  await awaitStore('ClickHouse', isReachable);
  const pool = () => readPool({ folder, url: clickhouse.url, environment });
  return { clickhouse, pool, run, terminal };
}

type Deps = Awaited<ReturnType<typeof prepareDeps>>;

interface GrantOptions extends JsonOption {
  readonly environmentId: string;
}

const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

function parseAccount(text: string): string {
  if (!ACCOUNT.test(text)) throw new InvalidArgumentError('Expected an account name, such as analyst_1.');
  return text;
}

function grantedEnvironmentOf({
  environment,
  project,
  allEnvironments = false,
}: EnvironmentOptions & { readonly allEnvironments?: boolean | undefined }): string {
  return allEnvironments ? ALL_ENVIRONMENTS : environmentOf({ environment, project });
}

const nameOf = (environmentId: string) => (environmentId === ALL_ENVIRONMENTS ? 'all environments' : environmentId);

async function create(
  deps: Deps,
  { environmentId, rawIds = false, json }: GrantOptions & { readonly rawIds?: boolean | undefined },
): Promise<void> {
  const { run, clickhouse, terminal } = deps;
  await warnIfUnknown(deps, environmentId);
  const assigning = assignAnalyst({ clickhouse, run, pool: () => deps.pool().accounts }, { rawIds });
  const found = await assigning.catch((fault: unknown) => {
    throw fault instanceof NoFreeAccount ? toPoolError(fault.known, rawIds) : fault;
  });
  await setGrant(run, found.account, { environmentId, revoked: false });
  const line = { account: found.account, environments: [environmentId], rawIds, password: found.password };
  const text = `Account ${found.account} can read ${nameOf(environmentId)}, ${rawIds ? 'with' : 'without'} raw ids. Password (shown only once):`;
  printResult(terminal, { json }, line, [text, found.password]);
}

function toPoolError(known: number, rawIds: boolean): Error {
  if (known === 0)
    return new Error(
      'ClickHouse does not allow accounts to be created with SQL, and the passwords in users.xml are unknown: run the ' +
        'command in the folder of the stack, or set CLICKHOUSE_ANALYST_1_PASSWORD and so on, as for ClickHouse',
    );
  return new Error(
    `all ${known} accounts ${rawIds ? 'with' : 'without'} raw ids are assigned or require a restart: drop ` +
      'an unused account (npm run analysts -- list, drop), then run npm run down and npm run up',
  );
}

async function grant(
  { run, terminal }: Deps,
  { account: name, environmentId, ...options }: GrantOptions & { readonly account: string },
): Promise<void> {
  const refusal = await findGrantRefusal(run, name);
  if (refusal !== null) throw new Error(refusal);
  const before = await findAccount(run, name);
  await warnIfUnknown({ run, terminal }, environmentId);
  if (!before.environments.includes(environmentId) || before.partlyGranted.includes(environmentId))
    await setGrant(run, name, { environmentId, revoked: false });
  print(await findAccount(run, name), options, terminal);
}

async function list({ run, terminal }: Deps, options: JsonOption): Promise<void> {
  for (const each of await listAnalysts(run))
    if (each.environments.length > 0 || each.owner !== null) print(each, options, terminal);
}

async function drop(
  { run, pool, terminal }: Deps,
  { account: name, ...options }: JsonOption & { readonly account: string; readonly yes?: boolean | undefined },
): Promise<void> {
  const { environments } = await findAccount(run, name);
  const effect = `${name} can read ${environments.map(nameOf).join(', ') || 'nothing'}. This revokes all grants immediately.`;
  await confirm(effect, options, terminal);
  const isPermanent = await isAnalystFromUsersXml(run, name);
  await dropAnalyst(run, name);
  const isInPool = pool().accounts.some((each) => each.account === name);
  const note = isPermanent ? (isInPool ? pool().renewPassword(name) : '') : 'The account was deleted.';
  const text = `All grants of ${name} were revoked. ${note}`.trim();
  printResult(terminal, options, { account: name, environments: [] }, text);
}

async function findAccount(run: RunStatement, account: string): Promise<AnalystAccount> {
  const found = (await listAnalysts(run)).find((each) => each.account === account);
  if (found !== undefined) return found;
  throw new Error(`analyst account ${account} does not exist: npm run analysts -- list shows all accounts`);
}

/** Warns if an environment has no events. A new environment has none, so the command continues. */
async function warnIfUnknown({ run, terminal }: Pick<Deps, 'run' | 'terminal'>, environmentId: string) {
  if (environmentId === ALL_ENVIRONMENTS) return;
  const query = 'SELECT 1 FROM events WHERE environment_id = {environment: String} LIMIT 1';
  if ((await run(query, { environment: environmentId })).length === 0)
    terminal.progress(`no events are stored for ${environmentId} yet: check the environment name`);
}

function print(
  { account, environments, rawIds, since, owner }: AnalystAccount,
  options: JsonOption,
  terminal: Terminal,
) {
  const rights = `${environments.map(nameOf).join(', ') || 'no environment'}  ${rawIds ? 'with' : 'without'} raw ids`;
  const portalAccount = owner === null ? {} : { portalAccount: owner.accountId, name: owner.name };
  const line = { account, environments, rawIds, since, ...portalAccount };
  const text = `${account}  ${rights}  since ${since}${owner === null ? '' : `  portal account ${owner.accountId}`}`;
  printResult(terminal, options, line, text);
}
