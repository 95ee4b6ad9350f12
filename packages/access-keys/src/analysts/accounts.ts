import { createHash, randomBytes, randomUUID } from 'node:crypto';
import {
  assertCluster,
  type ClickHouseAccount,
  onEachNode,
  overAllNodes,
  sendStatement,
  settleSome,
} from '@playline/stores';

/**
 * Runs a statement with parameters such as `{name: String}`. With `isPerNode`, runs it on each node of a cluster and skips
 * nodes that do not respond.
 * @returns rows of strings @throws Error
 */
export type RunStatement = (
  statement: string,
  parameters?: Readonly<Record<string, string>>,
  options?: { readonly isPerNode?: boolean },
) => Promise<readonly (readonly string[])[]>;

const STATEMENT_MAX_MS = 60_000;
/** A suspended node must not delay the others. */
const NODE_MAX_MS = 5_000;

/** Statements that concern one server. Each node of a cluster has its own accounts and queries. */
const OF_SERVER = /^(CREATE|DROP|GRANT|KILL) /;

/** Creates a function that runs statements in the account's database, on all nodes of a cluster. */
export function createRunStatement(account: ClickHouseAccount): RunStatement {
  const run = createRunOn(overAllNodes(account));
  const runOnEach = onEachNode(account).map((node) => createRunOn(node));
  const readOnEach = onEachNode(account).map((node) => createRunOn(node, NODE_MAX_MS));
  return async (statement, parameters, { isPerNode = false } = {}) => {
    // Nodes may be added while the process runs. Grants would be stored on only some of them.
    await assertCluster(account);
    if (isPerNode) {
      const results = await settleSome(readOnEach.map((readOnNode) => readOnNode(statement, parameters)));
      return results.flatMap((rows) => rows ?? []);
    }
    if (!OF_SERVER.test(statement)) return run(statement, parameters);
    for (const runOnNode of runOnEach) await runOnNode(statement, parameters);
    return [];
  };
}

function createRunOn(account: ClickHouseAccount, deadlineMs = STATEMENT_MAX_MS) {
  return async (statement: string, parameters: Readonly<Record<string, string>> = {}) => {
    const named = Object.entries(parameters).map(([name, value]) => [`param_${name}`, value]);
    const settings = { default_format: 'JSONCompactStringsEachRow', ...Object.fromEntries(named) };
    const response = await sendStatement(account, { body: statement, settings, deadlineMs });
    const lines = (await response.text()).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as string[]);
  };
}

/** Credentials that a member created in the portal. Their environments follow the member's role in the project. */
export interface AnalystOwner {
  /** Portal account. */
  readonly accountId: string;
  readonly projectId: string;
  /** What the credentials are used for, as entered by the member. */
  readonly name: string;
}

export interface AnalystAccount {
  readonly account: string;
  /** Null for accounts that `npm run analysts` created. */
  readonly owner: AnalystOwner | null;
  /** Time in epoch milliseconds at which the account was assigned, or 0. */
  readonly createdAt: number;
  /** Environment ids; `*` means all environments. In a cluster, those that any node grants. */
  readonly environments: readonly string[];
  /** Environments that only some nodes grant, because a change was not stored on all nodes. */
  readonly partlyGranted: readonly string[];
  /** Whether the account can read columns that may identify people. */
  readonly rawIds: boolean;
  /** Time of the first grant in ISO 8601 format, or '' without a grant. */
  readonly since: string;
}

/** Passwords are never stored. */
export interface AnalystCredentials {
  readonly account: string;
  readonly password: string;
}

export interface NewAccount {
  readonly rawIds: boolean;
  readonly owner?: AnalystOwner | null;
}

export const ALL_ENVIRONMENTS = '*';
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

/** Accounts that may pass the role on are not analysts. */
const ANALYSTS =
  'SELECT user_name FROM system.role_grants WHERE granted_role_name = {role: String} AND NOT with_admin_option';

/** Lists all analyst accounts by name, including accounts without grants. */
export async function listAnalysts(run: RunStatement): Promise<AnalystAccount[]> {
  const grants = await readGrants(run);
  const rows = await run(
    `SELECT user_name, max(granted_role_name = {raw: String}),
       if(countIf(environment_id != '') = 0, '', toString(min(given.changed_at))),
       any(owner_id), any(project_id), any(claimed.name), any(claimed_ms)
     FROM system.role_grants AS role
     LEFT JOIN (SELECT * FROM analyst_grants FINAL WHERE NOT revoked) AS given ON given.account = role.user_name
     LEFT JOIN (SELECT *, toUnixTimestamp64Milli(changed_at) AS claimed_ms FROM analyst_accounts FINAL WHERE NOT dropped
       ORDER BY changed_at DESC LIMIT 1 BY account) AS claimed ON claimed.account = role.user_name
     WHERE user_name IN (${ANALYSTS})
     GROUP BY user_name ORDER BY user_name`,
    { role: ROLE, raw: RAW_ROLE },
  );
  return rows.map(([account = '', raw, since = '', accountId = '', projectId = '', name = '', claimedAt]) => ({
    account,
    rawIds: raw === '1',
    ...grants.of(account),
    since: since === '' ? '' : `${since.replace(' ', 'T')}Z`,
    owner: accountId === '' ? null : { accountId, projectId, name },
    createdAt: Number(claimedAt),
  }));
}

/** Reads the grants of each node, because a change may have been stored on only some nodes. */
async function readGrants(run: RunStatement) {
  const rows = await run(
    'SELECT toJSONString(groupArray((account, environment_id))) FROM analyst_grants FINAL WHERE NOT revoked',
    {},
    { isPerNode: true },
  );
  const nodes = rows.map(([pairs = '[]']) => JSON.parse(pairs) as [account: string, environmentId: string][]);
  return {
    of: (account: string) => {
      const granted = nodes.map((pairs) => pairs.filter(([name]) => name === account).map(([, id]) => id));
      const environments = [...new Set(granted.flat())].sort();
      return { environments, partlyGranted: environments.filter((id) => !granted.every((ids) => ids.includes(id))) };
    },
  };
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
    `SELECT storage,
       (SELECT argMax(dropped, changed_at) FROM analyst_accounts FINAL WHERE account = {account: String} HAVING count() > 0),
       (SELECT count() FROM analyst_accounts FINAL WHERE account = {account: String} AND NOT dropped AND owner_id != '')
     FROM system.users WHERE name IN (${ANALYSTS}) AND name = {account: String}`,
    { account, role: ROLE },
  );
  const [row] = rows;
  if (row === undefined)
    return `analyst account ${account} does not exist: list all accounts (npm run analysts -- list), or create an account`;
  const [storage, dropped, owned] = row;
  if (owned !== '0')
    return `account ${account} belongs to a member of the portal: its environments follow the member's role`;
  if (account === BUILT_IN || storage !== 'users_xml' || dropped === 'false') return null;
  return `account ${account} ${dropped === 'true' ? 'was dropped' : 'is not assigned'}: assign an account with npm run analysts -- create`;
}

/** Creates an account without grants. @returns null if ClickHouse does not allow accounts to be created with SQL */
export async function createBySql(
  run: RunStatement,
  { rawIds, owner = null }: NewAccount,
): Promise<AnalystCredentials | null> {
  const [directories] = await run(`SELECT count() FROM system.user_directories WHERE ${WRITABLE}`);
  if (Number(directories?.[0]) === 0) return null;
  const account = `analyst_${rawIds ? 'raw_' : ''}${randomBytes(4).toString('hex')}`;
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  // Claimed first, so that every account in ClickHouse has its owner.
  await claim(run, { account, password }, owner);
  // Sent as a hash, so that the password does not appear in ClickHouse logs.
  const hash = createHash('sha256').update(password).digest('hex');
  await run(`CREATE USER ${account} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS PROFILE '${PROFILE}'`);
  // Equivalent to the quota `analyst` in users.xml, which applies only to accounts in that file.
  await run(
    `CREATE QUOTA ${account} KEYED BY user_name FOR INTERVAL 10 SECOND MAX result_rows = ${RESULT_ROWS_MAX} TO ${account}`,
  );
  await run(`GRANT ${rawIds ? `${ROLE}, ${RAW_ROLE}` : ROLE} TO ${account}`);
  return { account, password };
}

/** Whether the account can read raw ids, according to its name in users.xml. */
export const canReadRawIds = (account: string) => account.startsWith('analyst_raw_');

/** Whether the account was already assigned with this password. */
export async function isAssigned(run: RunStatement, { account, password }: AnalystCredentials): Promise<boolean> {
  return (await claimsOf(run, account, fingerprintOf(password))).length > 0;
}

/** Claims a free account. @returns false if several processes tried concurrently, in which case all of them fail */
export async function claim(
  run: RunStatement,
  { account, password }: AnalystCredentials,
  owner: AnalystOwner | null,
): Promise<boolean> {
  const claimed = { account, mark: fingerprintOf(password), id: randomUUID() };
  await putClaim(run, claimed, { owner, dropped: false });
  const isAlone = (await claimsOf(run, account, claimed.mark)).every((id) => id === claimed.id);
  if (!isAlone) await putClaim(run, claimed, { owner: null, dropped: true });
  return isAlone;
}

/** Revokes all of an account's grants, and kills its running queries. */
export async function dropAnalyst(run: RunStatement, account: string): Promise<void> {
  const { environments } = (await readGrants(run)).of(account);
  for (const environmentId of environments) await setGrant(run, account, { environmentId, revoked: true });
  await run('KILL QUERY WHERE user = {account: String} ASYNC FORMAT Null', { account });
  const claims = await run(
    'SELECT password_mark, claim FROM analyst_accounts FINAL WHERE account = {account: String} AND NOT dropped',
    { account },
  );
  for (const [mark = '', id = ''] of claims) await putClaim(run, { account, mark, id }, { owner: null, dropped: true });
  const created = "SELECT name FROM system.users WHERE name = {account: String} AND storage != 'users_xml'";
  if ((await run(created, { account })).length === 0) return;
  // These statements do not support parameters. The name is safe, because an account with this name exists.
  const name = `\`${account.replaceAll('`', '')}\``;
  await run(`DROP QUOTA IF EXISTS ${name}`);
  await run(`DROP USER IF EXISTS ${name}`);
}

/** Whether the account is defined in users.xml and therefore still exists after `drop`. */
export async function isAnalystFromUsersXml(run: RunStatement, account: string): Promise<boolean> {
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

async function putClaim(
  run: RunStatement,
  claimed: { readonly account: string; readonly mark: string; readonly id: string },
  { owner, dropped }: { readonly owner: AnalystOwner | null; readonly dropped: boolean },
) {
  const { accountId = '', projectId = '', name = '' } = owner ?? {};
  await run(
    `INSERT INTO analyst_accounts (account, password_mark, claim, owner_id, project_id, name, dropped, changed_at, version)
     SELECT {account: String}, {mark: String}, {id: UUID}, {accountId: String}, {projectId: String}, {name: String},
       {dropped: Bool}, now64(3), toUInt64({dropped: Bool})`,
    { ...claimed, accountId, projectId, name, dropped: String(dropped) },
  );
}
