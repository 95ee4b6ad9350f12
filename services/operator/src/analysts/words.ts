import { randomInt } from 'node:crypto';
import type { ClickHouseAccount } from '@playline/stores';
import { EXIT, type ExitCode, isMeant, type Terminal, textOf, UsageError, type Values } from '../command.ts';
import { environmentOf } from '../identity/subject.ts';
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
} from './accounts.ts';
import { type AnalystPool, readsRawIds } from './pool.ts';
import { type Ask, createAsk } from './statements.ts';

/** What an action of the command works with. */
export interface AnalystsWork {
  readonly clickhouse: ClickHouseAccount;
  readonly pool: () => AnalystPool;
  readonly ask: Ask;
  readonly values: Values;
  readonly terminal: Terminal;
}

const ACCOUNT = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** The value of `--account`. @throws UsageError */
export function accountOf(values: Values): string {
  const account = textOf(values, 'account') ?? '';
  if (!ACCOUNT.test(account)) throw new UsageError('--account: expected the name of an account, such as analyst_1');
  return account;
}

/** The environment of the grant: `--environment`, or all. @throws UsageError */
export function grantedEnvironmentOf(values: Values): string {
  if (values['all-environments'] !== true) return environmentOf(values);
  if (values.environment !== undefined) throw new UsageError('--environment or --all-environments, not both');
  return ALL;
}

const nameOf = (environmentId: string) => (environmentId === ALL ? 'all environments' : environmentId);

/** Claims a free account, grants it an environment, and shows its password once. */
export async function create(work: AnalystsWork): Promise<ExitCode> {
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
export async function grant({ ask, values, terminal, ...rest }: AnalystsWork): Promise<ExitCode> {
  const [account, environmentId] = [accountOf(values), grantedEnvironmentOf(values)];
  const refusal = await refusalOfGrant(ask, account);
  if (refusal !== null) throw new Error(refusal);
  const before = await findAccount(ask, account);
  await noteUnknown({ ask, values, terminal, ...rest }, environmentId);
  if (!before.environments.includes(environmentId)) await setGrant(ask, account, { environmentId, revoked: false });
  tell(await findAccount(ask, account), { values, terminal });
  return EXIT.ok;
}

export async function list({ ask, values, terminal }: AnalystsWork): Promise<ExitCode> {
  for (const account of await listAccounts(ask))
    if (account.environments.length > 0) tell(account, { values, terminal });
  return EXIT.ok;
}

/** Revokes all grants of an account. */
export async function drop({ ask, pool, values, terminal }: AnalystsWork): Promise<ExitCode> {
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
