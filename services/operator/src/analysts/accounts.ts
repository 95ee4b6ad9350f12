import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { RunStatement } from './run-statement.ts';

/** The rights of one account. */
export interface AnalystAccount {
  readonly account: string;
  /** Environment ids as in tables; `*` means all. Empty: the account sees nothing. */
  readonly environments: readonly string[];
  /** Whether it may read columns that identify people. */
  readonly rawIds: boolean;
  /** When its first grant was given; ISO 8601, UTC. Empty without a grant. */
  readonly since: string;
}

/** An account and its password. We store the text of the password nowhere. */
export interface Credentials {
  readonly account: string;
  readonly password: string;
}

/** Every environment. */
export const ALL = '*';
/** The account that every deployment has. */
const BUILT_IN = 'analyst';
/** Roles of users.xml: the first marks an account of analysts, the second lets it read raw ids. */
const ROLE = 'reads_views';
const RAW_ROLE = 'reads_raw_ids';
const PROFILE = 'analyst';
const PASSWORD_BYTES = 32;
/** As in the quota and the profile `analyst` of users.xml. */
const RESULT_ROWS_MAX = 1_000_000;

/** Account storages that accept new accounts. */
const WRITABLE = "type IN ('local_directory', 'replicated', 'memory')";

/** Identifies a password without revealing it: passwords are random, so guessing does not help. */
const fingerprintOf = (password: string) =>
  createHash('sha256').update(`analyst password: ${password}`).digest('hex').slice(0, 16);

/** All accounts of analysts by name, including those without a grant. */
export async function listAccounts(ask: RunStatement): Promise<AnalystAccount[]> {
  const rows = await ask(
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

/** Grants or revokes an environment of an account. A later change wins, whatever the clocks say. */
export async function setGrant(
  ask: RunStatement,
  account: string,
  change: { environmentId: string; revoked: boolean },
) {
  await ask(
    `INSERT INTO analyst_grants (account, environment_id, revoked, changed_at, version)
     SELECT {account: String}, {environment: String}, {revoked: Bool}, now64(3),
       greatest(toUInt64(toUnixTimestamp64Milli(now64(3))), max(version) + 1)
     FROM analyst_grants WHERE account = {account: String} AND environment_id = {environment: String}`,
    { account, environment: change.environmentId, revoked: String(change.revoked) },
  );
}

/** Why an account may not get more grants; null when it may. */
export async function findGrantRefusal(ask: RunStatement, account: string): Promise<string | null> {
  const rows = await ask(
    `SELECT storage, (SELECT argMax(dropped, changed_at) FROM analyst_accounts FINAL WHERE account = {account: String} HAVING count() > 0)
     FROM system.users WHERE name IN (SELECT user_name FROM system.role_grants WHERE granted_role_name = {role: String})
       AND name = {account: String}`,
    { account, role: ROLE },
  );
  const [row] = rows;
  if (row === undefined)
    return `there is no account ${account} for analysts: npm run analysts -- list shows them, create makes one`;
  const [storage, dropped] = row;
  if (account === BUILT_IN || storage !== 'users_xml' || dropped === 'false') return null;
  return `${account} is not given out${dropped === 'true' ? ' since it was dropped' : ''}: npm run analysts -- create gives out a free one`;
}

/** Creates an account by SQL, without any grant. @returns null where this server accepts no accounts by SQL */
export async function createBySql(ask: RunStatement, rawIds: boolean): Promise<Credentials | null> {
  const [directories] = await ask(`SELECT count() FROM system.user_directories WHERE ${WRITABLE}`);
  if (Number(directories?.[0]) === 0) return null;
  const account = `analyst_${rawIds ? 'raw_' : ''}${randomBytes(4).toString('hex')}`;
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  // Sent as a hash, so that no log of the server contains the password.
  const hash = createHash('sha256').update(password).digest('hex');
  await ask(`CREATE USER ${account} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS PROFILE '${PROFILE}'`);
  // The quota `analyst` of users.xml, which names accounts of that file only.
  await ask(
    `CREATE QUOTA ${account} KEYED BY user_name FOR INTERVAL 10 SECOND MAX result_rows = ${RESULT_ROWS_MAX} TO ${account}`,
  );
  await ask(`GRANT ${rawIds ? `${ROLE}, ${RAW_ROLE}` : ROLE} TO ${account}`);
  await claim(ask, { account, password });
  return { account, password };
}

/** Whether the account was already given out with this password. */
export async function isAssigned(ask: RunStatement, { account, password }: Credentials): Promise<boolean> {
  return (await claimsOf(ask, account, fingerprintOf(password))).length > 0;
}

/** Claims a free account. @returns false when another command tried at the same time: then neither gets it */
export async function claim(ask: RunStatement, { account, password }: Credentials): Promise<boolean> {
  const [mark, id] = [fingerprintOf(password), randomUUID()];
  await putClaim(ask, { account, mark, id }, false);
  return (await claimsOf(ask, account, mark)).every((other) => other === id);
}

/** Revokes all grants of an account, so that its next query returns nothing, and ends its running queries. */
export async function dropAccount(ask: RunStatement, account: string): Promise<void> {
  const grants = await ask(
    'SELECT environment_id FROM analyst_grants FINAL WHERE account = {account: String} AND NOT revoked',
    {
      account,
    },
  );
  for (const [environmentId = ''] of grants) await setGrant(ask, account, { environmentId, revoked: true });
  await ask('KILL QUERY WHERE user = {account: String} ASYNC FORMAT Null', { account });
  const claims = await ask(
    'SELECT password_mark, claim FROM analyst_accounts FINAL WHERE account = {account: String} AND NOT dropped',
    { account },
  );
  for (const [mark = '', id = ''] of claims) await putClaim(ask, { account, mark, id }, true);
  const [made] = await ask("SELECT name FROM system.users WHERE name = {account: String} AND storage != 'users_xml'", {
    account,
  });
  if (made === undefined) return;
  // These statements take no parameters; the name is that of an existing account.
  const name = `\`${account.replaceAll('`', '')}\``;
  await ask(`DROP QUOTA IF EXISTS ${name}`);
  await ask(`DROP USER IF EXISTS ${name}`);
}

/** Whether an account is defined in users.xml, so that it continues to exist after `drop`. */
export async function isFromUsersXml(ask: RunStatement, account: string): Promise<boolean> {
  const rows = await ask("SELECT 1 FROM system.users WHERE name = {account: String} AND storage = 'users_xml'", {
    account,
  });
  return rows.length > 0;
}

async function claimsOf(ask: RunStatement, account: string, mark: string): Promise<string[]> {
  const rows = await ask(
    'SELECT DISTINCT claim FROM analyst_accounts WHERE account = {account: String} AND password_mark = {mark: String}',
    { account, mark },
  );
  return rows.map(([id = '']) => id);
}

async function putClaim(
  ask: RunStatement,
  claimed: { account: string; mark: string; id: string },
  dropped: boolean,
): Promise<void> {
  await ask(
    `INSERT INTO analyst_accounts (account, password_mark, claim, dropped, changed_at, version)
     SELECT {account: String}, {mark: String}, {id: UUID}, {dropped: Bool}, now64(3), toUInt64({dropped: Bool})`,
    { ...claimed, dropped: String(dropped) },
  );
}
