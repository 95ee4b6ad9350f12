import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClickHouseAccount, sendStatement } from '@playline/stores';
import { z } from 'zod';
import { readStack } from '../addresses.ts';

/** Runs a statement with parameters such as `{name: String}`. @returns rows of strings @throws Error */
export type RunStatement = (
  statement: string,
  parameters?: Readonly<Record<string, string>>,
) => Promise<readonly (readonly string[])[]>;

const STATEMENT_MAX_MS = 60_000;

/** Creates a function that runs statements in the account's database. */
export function createRunStatement(account: ClickHouseAccount): RunStatement {
  return async (statement, parameters = {}) => {
    const named = Object.entries(parameters).map(([name, value]) => [`param_${name}`, value]);
    const settings = { default_format: 'JSONCompactStringsEachRow', ...Object.fromEntries(named) };
    const response = await sendStatement(account, { body: statement, settings, deadlineMs: STATEMENT_MAX_MS });
    const lines = (await response.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as string[]);
  };
}

export interface AnalystAccount {
  readonly account: string;
  /** Environment ids; `*` means all environments. */
  readonly environments: readonly string[];
  /** Whether the account can read columns that may identify people. */
  readonly rawIds: boolean;
  /** Time of the first grant in ISO 8601 format, or '' without a grant. */
  readonly since: string;
}

/** Passwords are never stored. */
export interface Credentials {
  readonly account: string;
  readonly password: string;
}

export const ALL = '*';
/** The account that exists in every deployment. */
const BUILT_IN = 'analyst';
/** Roles in users.xml: the first role marks analyst accounts, the second role allows raw ids. */
const ROLE = 'reads_views';
const RAW_ROLE = 'reads_raw_ids';
const PROFILE = 'analyst';
const PASSWORD_BYTES = 32;
/** Same limit as in users.xml. */
const RESULT_ROWS_MAX = 1_000_000;

/** Matches user directories in which accounts can be created. */
const WRITABLE = "type IN ('local_directory', 'replicated', 'memory')";

/** Identifies a password without revealing it. */
const fingerprintOf = (password: string) =>
  createHash('sha256').update(`analyst password: ${password}`).digest('hex').slice(0, 16);

/** Lists all analyst accounts by name, including accounts without grants. */
export async function listAccounts(run: RunStatement): Promise<AnalystAccount[]> {
  const rows = await run(
    `SELECT user_name, max(granted_role_name = {raw: String}),
       arrayStringConcat(arraySort(groupUniqArrayIf(environment_id, environment_id != '')), ','), min(changed_at)
     FROM system.role_grants AS role
     LEFT JOIN (SELECT * FROM analyst_grants FINAL WHERE NOT revoked) AS given ON given.account = role.user_name
     WHERE user_name IN (SELECT user_name FROM system.role_grants WHERE granted_role_name = {role: String})
     GROUP BY user_name ORDER BY user_name`,
    { role: ROLE, raw: RAW_ROLE },
  );
  return rows.map(([account = '', raw, ids = '', since = '']) => {
    const environments = ids === '' ? [] : ids.split(',');
    return { account, rawIds: raw === '1', environments, since: ids === '' ? '' : `${since.replace(' ', 'T')}Z` };
  });
}

/** Grants or revokes an environment. The version increases even if clocks differ, so the latest change takes effect. */
export async function setGrant(
  run: RunStatement,
  account: string,
  change: { environmentId: string; revoked: boolean },
) {
  await run(
    `INSERT INTO analyst_grants (account, environment_id, revoked, changed_at, version)
     SELECT {account: String}, {environment: String}, {revoked: Bool}, now64(3),
       greatest(toUInt64(toUnixTimestamp64Milli(now64(3))), max(version) + 1)
     FROM analyst_grants WHERE account = {account: String} AND environment_id = {environment: String}`,
    { account, environment: change.environmentId, revoked: String(change.revoked) },
  );
}

/** Returns why no environment can be granted to an account, or null. */
export async function findGrantRefusal(run: RunStatement, account: string): Promise<string | null> {
  const rows = await run(
    `SELECT storage, (SELECT argMax(dropped, changed_at) FROM analyst_accounts FINAL WHERE account = {account: String} HAVING count() > 0)
     FROM system.users WHERE name IN (SELECT user_name FROM system.role_grants WHERE granted_role_name = {role: String})
       AND name = {account: String}`,
    { account, role: ROLE },
  );
  const [row] = rows;
  if (row === undefined)
    return `analyst account ${account} does not exist: list all accounts (npm run analysts -- list), or create an account`;
  const [storage, dropped] = row;
  if (account === BUILT_IN || storage !== 'users_xml' || dropped === 'false') return null;
  return `account ${account} ${dropped === 'true' ? 'was dropped' : 'is not assigned'}: assign an account with npm run analysts -- create`;
}

/** Creates an account without grants. @returns null if ClickHouse does not allow accounts to be created with SQL */
export async function createBySql(run: RunStatement, rawIds: boolean): Promise<Credentials | null> {
  const [directories] = await run(`SELECT count() FROM system.user_directories WHERE ${WRITABLE}`);
  if (Number(directories?.[0]) === 0) return null;
  const account = `analyst_${rawIds ? 'raw_' : ''}${randomBytes(4).toString('hex')}`;
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  // Sent as a hash, so that the password does not appear in ClickHouse logs.
  const hash = createHash('sha256').update(password).digest('hex');
  await run(`CREATE USER ${account} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS PROFILE '${PROFILE}'`);
  // Equivalent to the quota `analyst` in users.xml, which applies only to accounts in that file.
  await run(
    `CREATE QUOTA ${account} KEYED BY user_name FOR INTERVAL 10 SECOND MAX result_rows = ${RESULT_ROWS_MAX} TO ${account}`,
  );
  await run(`GRANT ${rawIds ? `${ROLE}, ${RAW_ROLE}` : ROLE} TO ${account}`);
  await claim(run, { account, password });
  return { account, password };
}

/** Whether the account was already assigned with this password. */
export async function isAssigned(run: RunStatement, { account, password }: Credentials): Promise<boolean> {
  return (await claimsOf(run, account, fingerprintOf(password))).length > 0;
}

/** Claims a free account. @returns false if several commands tried concurrently, in which case all of them fail */
export async function claim(run: RunStatement, { account, password }: Credentials): Promise<boolean> {
  const [mark, id] = [fingerprintOf(password), randomUUID()];
  await putClaim(run, { account, mark, id }, false);
  return (await claimsOf(run, account, mark)).every((claimId) => claimId === id);
}

/** Revokes all of an account's grants, and kills its running queries. */
export async function dropAccount(run: RunStatement, account: string): Promise<void> {
  const granted = 'SELECT environment_id FROM analyst_grants FINAL WHERE account = {account: String} AND NOT revoked';
  const grants = await run(granted, { account });
  for (const [environmentId = ''] of grants) await setGrant(run, account, { environmentId, revoked: true });
  await run('KILL QUERY WHERE user = {account: String} ASYNC FORMAT Null', { account });
  const claims = await run(
    'SELECT password_mark, claim FROM analyst_accounts FINAL WHERE account = {account: String} AND NOT dropped',
    { account },
  );
  for (const [mark = '', id = ''] of claims) await putClaim(run, { account, mark, id }, true);
  const created = "SELECT name FROM system.users WHERE name = {account: String} AND storage != 'users_xml'";
  if ((await run(created, { account })).length === 0) return;
  // These statements do not support parameters. The name is safe, because an account with this name exists.
  const name = `\`${account.replaceAll('`', '')}\``;
  await run(`DROP QUOTA IF EXISTS ${name}`);
  await run(`DROP USER IF EXISTS ${name}`);
}

/** Whether the account is defined in users.xml and therefore still exists after `drop`. */
export async function isFromUsersXml(run: RunStatement, account: string): Promise<boolean> {
  const fromFile = "SELECT 1 FROM system.users WHERE name = {account: String} AND storage = 'users_xml'";
  return (await run(fromFile, { account })).length > 0;
}

async function claimsOf(run: RunStatement, account: string, mark: string): Promise<string[]> {
  const rows = await run(
    'SELECT DISTINCT claim FROM analyst_accounts WHERE account = {account: String} AND password_mark = {mark: String}',
    { account, mark },
  );
  return rows.map(([id = '']) => id);
}

async function putClaim(run: RunStatement, claimed: { account: string; mark: string; id: string }, dropped: boolean) {
  await run(
    `INSERT INTO analyst_accounts (account, password_mark, claim, dropped, changed_at, version)
     SELECT {account: String}, {mark: String}, {id: UUID}, {dropped: Bool}, now64(3), toUInt64({dropped: Bool})`,
    { ...claimed, dropped: String(dropped) },
  );
}

export interface PoolOptions {
  /** Folder that may contain a stack in `.playline`. */
  readonly folder: string;
  readonly url: string;
  /** May contain `CLICKHOUSE_ANALYST_1_PASSWORD` and so on, for deployments without a stack. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const POOL_ACCOUNT = /^analyst_(raw_)?\d+$/;
const VARIABLE = /^CLICKHOUSE_(ANALYST_(?:RAW_)?\d+)_PASSWORD$/;
const secretsSchema = z.object({ analystPasswords: z.record(z.string().regex(POOL_ACCOUNT), z.string().min(1)) });

/** Whether the account can read raw ids, according to its name in users.xml. */
export const canReadRawIds = (account: string) => account.startsWith('analyst_raw_');

/**
 * Reads the accounts in users.xml and their passwords from the stack in `folder` if its ClickHouse is used, otherwise
 * from the environment. `renewPassword` returns how to make a dropped account available again.
 */
export function readPool({ folder, url, environment }: PoolOptions) {
  if (readStack(folder).clickhouse?.url === url) return readStackPool(join(folder, '.playline'));
  const accounts = Object.entries(environment).flatMap(([variable, password = '']) => {
    const account = VARIABLE.exec(variable)?.[1]?.toLowerCase();
    return account === undefined || password === '' ? [] : [{ account, password }];
  });
  return { accounts: sortAccounts(accounts), renewPassword: renewInEnvironment };
}

function readStackPool(state: string) {
  return {
    accounts: sortAccounts(readPasswords(join(state, 'secrets.json'))),
    renewPassword: (account: string) => {
      // The stack reads this folder when it starts, because only the start writes secrets.json.
      const dropped = join(state, 'dropped-accounts');
      mkdirSync(dropped, { recursive: true, mode: 0o700 });
      closeSync(openSync(join(dropped, account), 'a', 0o600));
      return 'To make the account available again with a new password, run npm run down and npm run up.';
    },
  };
}

const renewInEnvironment = (account: string) =>
  `To make the account available again, change CLICKHOUSE_${account.toUpperCase()}_PASSWORD here and for ClickHouse, and restart ClickHouse.`;

function readPasswords(path: string): Credentials[] {
  const parsed = secretsSchema.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  // A stack that was never started has no passwords.
  if (!parsed.success) return [];
  return Object.entries(parsed.data.analystPasswords).map(([account, password]) => ({ account, password }));
}

const sortAccounts = (accounts: Credentials[]) =>
  accounts.toSorted((a, b) => a.account.localeCompare(b.account, 'en', { numeric: true }));
