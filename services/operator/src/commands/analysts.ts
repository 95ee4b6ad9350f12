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
  dropAccount,
  findGrantRefusal,
  isAssigned,
  isFromUsersXml,
  listAccounts,
  setGrant,
} from '../analysts/accounts.ts';
import { type AnalystPool, type PoolOptions, readPool, readsRawIds } from '../analysts/pool.ts';
import { createRunStatement, type RunStatement } from '../analysts/run-statement.ts';
import { awaitStore } from '../await-store.ts';
import { type CreateCommand, command, EXIT, endWith, isConfirmed, type Terminal, UsageError } from '../command.ts';
import { environmentOf } from '../identity/subject.ts';
import type { EnvironmentOptions } from '../keys/subcommands.ts';

const ABOUT = `
Accounts of ClickHouse for analysts. They read only views, and of those only the rows of their environments.

Needs CLICKHOUSE_URL with the operator's account, or a stack that runs here (.playline/stack.json). Where ClickHouse
accepts accounts by SQL, create makes one. Otherwise it gives out the accounts of users.xml, whose passwords the stack has
(.playline/secrets.json), or the environment: CLICKHOUSE_ANALYST_1_PASSWORD and so on.`;

/** The row policies of users.xml are for this database; in another one every account would be refused. */
const DATABASE = 'playline';

export interface AnalystsContext extends Omit<PoolOptions, 'url'> {
  readonly clickhouse: () => ClickHouseAccount;
}

const json = () => new Option('--json', 'print results as JSON, one per line');
const account = () =>
  new Option('--account <name>', 'name of the account, as list shows it').argParser(parseAccount).makeOptionMandatory();

/** A subcommand that grants an environment. */
const granting = (name: string, description: string) =>
  command(name, description)
    .option('--environment <name>', 'production, development, or an environment id as in tables: demo-production')
    .option('--project <id>', 'project of the environment', FIRST_PROJECT)
    .addOption(
      new Option('--all-environments', 'instead of --environment: all of them, also future ones').conflicts(
        'environment',
      ),
    )
    .addOption(json());

export const createAnalystsCommand =
  (context: AnalystsContext): CreateCommand =>
  (terminal) =>
    command('analysts', 'create, grant, list and drop ClickHouse accounts for analysts')
      .addCommand(
        granting('create', 'give out a free account for an environment and print its password, this once')
          .option('--raw-ids', 'let it read ids, pages, properties and traits as sent, which may identify people')
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await create(await openWork(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        granting('grant', 'let an account read another environment, from its next query')
          .addOption(account())
          .action(async (options) => {
            const environmentId = grantedEnvironmentOf(options);
            await grant(await openWork(context, terminal), { ...options, environmentId });
          }),
      )
      .addCommand(
        command('list', 'list accounts that may read something: environments, raw ids, since when')
          .addOption(json())
          .action(async (options) => list(await openWork(context, terminal), options)),
      )
      .addCommand(
        command('drop', 'revoke everything from an account, immediately')
          .addOption(account())
          .option('--yes', 'without confirmation')
          .addOption(json())
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
  const ask = createRunStatement(clickhouse);
  await awaitStore('ClickHouse', () => answers(ask));
  const pool = (): AnalystPool => readPool({ folder, url: clickhouse.url, environment });
  return { clickhouse, pool, ask, terminal };
}

/** Whether the server answers; a refusal is an answer, and the following query reports it. */
async function answers(ask: RunStatement): Promise<boolean> {
  try {
    await ask('SELECT 1');
    return true;
  } catch (fault) {
    return fault instanceof ClickHouseFault;
  }
}

/** What the actions work with. */
type Work = Awaited<ReturnType<typeof openWork>>;

interface Output {
  readonly json?: boolean | undefined;
}

interface GrantOptions extends Output {
  readonly environmentId: string;
}

const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** @throws InvalidArgumentError */
function parseAccount(text: string): string {
  if (!ACCOUNT.test(text)) throw new InvalidArgumentError('Expected the name of an account, such as analyst_1.');
  return text;
}

/** The environment of the grant: `--environment`, or all. @throws UsageError */
function grantedEnvironmentOf({
  environment,
  project,
  allEnvironments = false,
}: EnvironmentOptions & { readonly allEnvironments?: boolean | undefined }): string {
  return allEnvironments ? ALL : environmentOf({ environment, project });
}

const nameOf = (environmentId: string) => (environmentId === ALL ? 'all environments' : environmentId);

/** Claims a free account, grants it an environment, and shows its password once. */
async function create(
  work: Work,
  { environmentId, rawIds = false, json: isJson }: GrantOptions & { readonly rawIds?: boolean | undefined },
): Promise<void> {
  const { ask, terminal } = work;
  await noteUnknown(work, environmentId);
  const found = (await createBySql(ask, rawIds)) ?? (await takeFromPool(work, rawIds));
  await setGrant(ask, found.account, { environmentId, revoked: false });
  const line = { account: found.account, environments: [environmentId], rawIds, password: found.password };
  const text = `account ${found.account} of ${nameOf(environmentId)}, ${rawIds ? 'with' : 'without'} raw ids; its password, shown this once:`;
  for (const shown of isJson === true ? [JSON.stringify(line)] : [text, found.password]) terminal.result(shown);
}

async function takeFromPool({ clickhouse, pool, ask }: Work, rawIds: boolean): Promise<Credentials> {
  const accounts = pool().accounts.filter(({ account }) => readsRawIds(account) === rawIds);
  if (accounts.length === 0)
    throw new Error(
      'this ClickHouse accepts no accounts by SQL, and the passwords of those of users.xml are not known: run the command ' +
        'where the stack runs, or set CLICKHOUSE_ANALYST_1_PASSWORD and so on as ClickHouse has them',
    );
  let left: readonly Credentials[] = accounts;
  while (left.length > 0) {
    const [each, ...others] = left as [Credentials, ...Credentials[]];
    left = others;
    if (await isAssigned(ask, each)) continue;
    // The server may have started with another password: then this one does not work.
    if (!(await canLogIn(clickhouse, each))) continue;
    if (await claim(ask, each)) return each;
    // In random order, so that two commands that blocked each other do not meet at every following account.
    left = inRandomOrder(others);
  }
  throw new Error(
    `all ${accounts.length} accounts ${rawIds ? 'with' : 'without'} raw ids are given out, or wait for the next start: ` +
      'drop one that is not needed (npm run analysts -- list, drop), then npm run down and npm run up',
  );
}

function inRandomOrder<T>(values: readonly T[]): T[] {
  const drawn = values.map((value) => ({ value, at: randomInt(2 ** 32) }));
  return drawn.toSorted((a, b) => a.at - b.at).map(({ value }) => value);
}

async function canLogIn(
  { onFault: _, ...clickhouse }: ClickHouseAccount,
  { account, password }: Credentials,
): Promise<boolean> {
  const ask = createRunStatement({ ...clickhouse, user: account, password });
  return ask('SELECT 1').then(
    () => true,
    () => false,
  );
}

/** Grants an account another environment. */
async function grant(
  { ask, terminal }: Work,
  { account: name, environmentId, json: isJson }: GrantOptions & { readonly account: string },
): Promise<void> {
  const refusal = await findGrantRefusal(ask, name);
  if (refusal !== null) throw new Error(refusal);
  const before = await findAccount(ask, name);
  await noteUnknown({ ask, terminal }, environmentId);
  if (!before.environments.includes(environmentId)) await setGrant(ask, name, { environmentId, revoked: false });
  terminal.result(toLine(await findAccount(ask, name), isJson));
}

async function list({ ask, terminal }: Work, { json: isJson }: Output): Promise<void> {
  for (const each of await listAccounts(ask)) if (each.environments.length > 0) terminal.result(toLine(each, isJson));
}

interface DropOptions extends Output {
  readonly account: string;
  readonly yes?: boolean | undefined;
}

/** Revokes all grants of an account. */
async function drop({ ask, pool, terminal }: Work, { account: name, yes, json: isJson }: DropOptions): Promise<void> {
  const { environments } = await findAccount(ask, name);
  const effect = `${name} reads ${environments.map(nameOf).join(', ') || 'nothing'}. It sees nothing from its next query on.`;
  if (!(await isConfirmed(effect, { yes }, terminal))) {
    terminal.progress('nothing was changed');
    return endWith(EXIT.failed);
  }
  const stays = await isFromUsersXml(ask, name);
  await dropAccount(ask, name);
  const isOfPool = pool().accounts.some((each) => each.account === name);
  const next = stays ? (isOfPool ? pool().renewPassword(name) : '') : 'The account is gone.';
  const line = JSON.stringify({ account: name, environments: [] });
  terminal.result(isJson === true ? line : `${name} sees nothing any more. ${next}`.trim());
}

async function findAccount(ask: RunStatement, account: string): Promise<AnalystAccount> {
  const found = (await listAccounts(ask)).find((each) => each.account === account);
  if (found !== undefined) return found;
  throw new Error(`there is no account ${account} for analysts: npm run analysts -- list shows them`);
}

/** An unknown environment may be new, so it is accepted with a note. */
async function noteUnknown({ ask, terminal }: Pick<Work, 'ask' | 'terminal'>, environmentId: string) {
  if (environmentId === ALL) return;
  const rows = await ask('SELECT 1 FROM events WHERE environment_id = {environment: String} LIMIT 1', {
    environment: environmentId,
  });
  if (rows.length === 0) terminal.progress(`no event of ${environmentId} is stored yet: is the name right?`);
}

function toLine(analyst: AnalystAccount, isJson = false): string {
  const { environments, rawIds, since } = analyst;
  const may = `${environments.map(nameOf).join(', ')}  ${rawIds ? 'with' : 'without'} raw ids`;
  return isJson ? JSON.stringify(analyst) : `${analyst.account}  ${may}  since ${since}`;
}
