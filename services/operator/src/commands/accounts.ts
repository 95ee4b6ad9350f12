import { Option } from '@commander-js/extra-typings';
import {
  type AccountContext,
  type AccountRecord,
  disableAccount,
  enableAccount,
  FIRST_LINK_LIFETIME_S,
  findByLogin,
  INVITATION_MS,
  type Invited,
  invite,
  isRemoved,
  issueFirstLink,
  type OneTimeTokens,
  ROLES,
  removeAccount,
  resetAccess,
  revokeInvitation,
  type SessionStores,
  setAdministrator,
  setRole,
  unlinkOpenId,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import {
  type Deps as CommandDeps,
  type CreateCommand,
  command,
  confirm,
  type JsonOption,
  jsonCommand,
  plural,
  printResult,
  type Terminal,
  UnreachableError,
  UsageError,
  yesOption,
} from '../command.ts';
import { type ProjectSources, requireProject } from '../projects/environments.ts';
import { type RecordSources, withPair, withRecords } from '../records/record-access.ts';

const ABOUT = `
Links are printed once and are not stored. Anyone who has a link can use it, but only once. The last administrator and
the last owner of a project cannot be removed, disabled or demoted.

Requires REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;

const FIRST_LINK_MINUTES = FIRST_LINK_LIFETIME_S / 60;
const INVITATION_HOURS = INVITATION_MS / 3_600_000;

type Deps = CommandDeps<AccountsContext>;

type Change = (accounts: AccountContext, id: string) => Promise<AccountRecord>;
const origin = () =>
  new Option('--origin <origin>', 'portal origin, such as https://portal.example.com (default: the local stack)');

const accountCommand = (name: string, description: string) =>
  jsonCommand(name, description).requiredOption('--account <account>', 'account id or login');

const changeCommand = (deps: Deps, name: string, description: string, change: Change) =>
  accountCommand(name, description).action((options) => changeAccount(deps, options, change));

export const createAccountsCommand =
  (context: AccountsContext): CreateCommand =>
  (terminal) => {
    const deps: Deps = { context, terminal };
    const unlink: Change = (accounts, accountId) => unlinkOpenId(accounts, { accountId });
    return command('accounts', 'manage portal accounts')
      .addCommand(link(deps))
      .addCommand(list(deps))
      .addCommand(inviteOne(deps))
      .addCommand(changeCommand(deps, 'revoke', 'revoke an invitation', revokeInvitation))
      .addCommand(roles(deps))
      .addCommand(administrator(deps))
      .addCommand(changeCommand(deps, 'disable', 'disable an account and end its sessions', disableAccount))
      .addCommand(changeCommand(deps, 'enable', 'enable a disabled account', enableAccount))
      .addCommand(reset(deps))
      .addCommand(changeCommand(deps, 'unlink', 'unlink an account from its OpenID Connect provider', unlink))
      .addCommand(remove(deps))
      .addHelpText('after', ABOUT);
  };

const link = ({ context, terminal }: Deps) =>
  jsonCommand('link', 'print a link to create the first administrator')
    .addOption(origin())
    .addHelpText(
      'after',
      `\nThe link is valid for ${FIRST_LINK_MINUTES} minutes. The command fails if an administrator exists.`,
    )
    .action(async (options) => {
      const portal = originOf(context, options.origin);
      // Redis may have lost an administrator, so the log is checked.
      const code = await withAccounts(context, (_, oneTimeTokens) =>
        withPair(context.accounts, ({ log }) => issueFirstLink({ log, oneTimeTokens })),
      );
      const url = linkTo(portal, '/first-sign-in', code);
      terminal.progress(
        `Open this link within ${FIRST_LINK_MINUTES} minutes to create the first administrator (valid for one use):`,
      );
      printResult(terminal, options, { link: url }, url);
    });

const list = ({ context, terminal }: Deps) =>
  jsonCommand('list', 'list accounts with their state, roles and sign-in methods').action(async (options) => {
    const accounts = (await withAccounts(context, ({ store }) => store.readAll()))
      .filter((account) => !isRemoved(account))
      .toSorted((a, b) => a.createdAt - b.createdAt);
    for (const account of accounts) showAccount(account, options, terminal);
    if (accounts.length === 0)
      terminal.progress('no accounts yet: run npm run accounts -- link to create the first administrator');
  });

const inviteOne = (deps: Deps) =>
  jsonCommand('invite', 'create an account and print its invitation link')
    .requiredOption('--name <name>', 'name of the invited person')
    .option('--project <project>', 'project id or name; requires --role')
    .addOption(new Option('--role <role>', 'role in the project').choices(ROLES))
    .option('--administrator', 'make the invited person an administrator of the deployment')
    .addOption(origin())
    .addHelpText(
      'after',
      `\nThe link is valid for ${INVITATION_HOURS} hours. A person with an existing account can add the role to that account.`,
    )
    .action(async ({ name, project, role, administrator: isAdministrator = false, ...options }) => {
      const { context } = deps;
      if (project === undefined && !isAdministrator)
        throw new UsageError('Pass --project and --role, or --administrator.');
      if (project !== undefined && role === undefined) throw new UsageError('Option --project requires --role.');
      const portal = originOf(context, options.origin);
      const projectId = project === undefined ? null : (await requireProject(context, project)).id;
      const granted = projectId === null || role === undefined ? [] : [{ projectId, role }];
      const invited = await withAccounts(context, (accounts) =>
        invite(accounts, { name, roles: granted, isAdministrator }),
      );
      showLink(deps, invited, { url: linkTo(portal, '/invitation', invited.text), ...options });
    });

const roles = (deps: Deps) =>
  accountCommand('roles', "set an account's project role and end the account's sessions")
    .requiredOption('--project <project>', 'project id or name')
    .addOption(
      new Option('--role <role>', 'role in the project, or none to remove the account from the project')
        .choices([...ROLES, 'none'] as const)
        .makeOptionMandatory(),
    )
    .action(async (options) => {
      const { id: projectId } = await requireProject(deps.context, options.project);
      const role = options.role === 'none' ? null : options.role;
      await changeAccount(deps, options, (accounts, accountId) => setRole(accounts, { accountId, projectId, role }));
    });

const administrator = (deps: Deps) =>
  accountCommand('administrator', 'grant or revoke the administrator role')
    .addOption(
      new Option('--is <answer>', 'yes to grant the role, no to revoke it')
        .choices(['yes', 'no'] as const)
        .makeOptionMandatory(),
    )
    .action((options) =>
      changeAccount(deps, options, (accounts, accountId) =>
        setAdministrator(accounts, { accountId, isAdministrator: options.is === 'yes' }),
      ),
    );

const reset = (deps: Deps) =>
  accountCommand('reset', "remove an account's password, passkeys and provider, and print a sign-in link")
    .addOption(origin())
    .addHelpText('after', '\nUse this command for a person who can no longer sign in.')
    .action(async (options) => {
      const portal = originOf(deps.context, options.origin);
      const invited = await withAccounts(deps.context, async (accounts) =>
        resetAccess(accounts, (await requireAccount(accounts, options.account)).id),
      );
      const path = invited.account.state === 'invited' ? '/invitation' : '/reset';
      showLink(deps, invited, { url: linkTo(portal, path, invited.text), ...options });
    });

const remove = (deps: Deps) =>
  accountCommand('remove', 'permanently remove an account and erase its name and login')
    .addOption(yesOption())
    .action(async (options) => {
      const { id, name } = await withAccounts(deps.context, (accounts) => requireAccount(accounts, options.account));
      const effect = `This permanently removes account ${id} (${name}) and erases its name and login.`;
      await confirm(effect, options, deps.terminal);
      await changeAccount(deps, { account: id, json: options.json }, removeAccount);
    });

async function changeAccount(
  { context, terminal }: Deps,
  options: JsonOption & { readonly account: string },
  change: Change,
): Promise<void> {
  const changed = await withAccounts(context, async (accounts) =>
    change(accounts, (await requireAccount(accounts, options.account)).id),
  );
  showAccount(changed, options, terminal);
}

function showLink({ terminal }: Deps, { account }: Invited, { url, json = false }: JsonOption & { url: string }): void {
  if (!json) terminal.progress(`Link for ${account.name}, valid for ${INVITATION_HOURS} hours and one use:`);
  printResult(terminal, { json }, { account: account.id, link: url, expiresAt: account.invitation?.expiresAt }, url);
}

interface AccountsContext extends ProjectSources {
  readonly accounts: RecordSources<AccountRecord>;
  openSessions(): Promise<SessionStores>;
  portal(): string | null;
}

/** Runs `work` with the account stores; changes are recorded under the operator's name. @throws UnreachableError */
export async function withAccounts<T>(
  { accounts, openSessions }: AccountsContext,
  work: (context: AccountContext, oneTimeTokens: OneTimeTokens) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await openSessions(), ({ sessions, oneTimeTokens }) =>
    withRecords(accounts, (store) => work({ store, sessions, actorId: null }, oneTimeTokens)),
  );
}

/** @throws Error for an unknown or removed account */
async function requireAccount({ store }: AccountContext, idOrLogin: string): Promise<AccountRecord> {
  const accounts = await store.readAll();
  const found = accounts.find(({ id }) => id === idOrLogin) ?? findByLogin(accounts, idOrLogin);
  if (found === null || isRemoved(found))
    throw new Error(`account ${idOrLogin} does not exist: npm run accounts -- list shows all accounts`);
  return found;
}

/** @throws UsageError for an invalid origin; UnreachableError if neither an origin nor a local portal is available */
function originOf({ portal }: Pick<AccountsContext, 'portal'>, origin: string | undefined): string {
  if (origin === undefined) {
    const running = portal();
    if (running !== null) return running;
    throw new UnreachableError(
      'no local portal is running: start the stack (npm run up), or pass --origin https://portal.example.com',
    );
  }
  const url = URL.parse(origin);
  if (url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw new UsageError('--origin: expected a URL without a path, such as https://portal.example.com');
}

function linkTo(origin: string, path: string, code: string): string {
  const url = new URL(path, origin);
  url.searchParams.set('code', code);
  return url.href;
}

function withoutCredentials({ passwordHash, passkeys, invitation, openId, ...account }: AccountRecord) {
  return {
    ...account,
    hasPassword: passwordHash !== null,
    passkeys: passkeys.map(({ name, createdAt }) => ({ name, createdAt })),
    openIdIssuer: openId?.issuer ?? null,
    linkExpiresAt: invitation?.expiresAt ?? null,
  };
}

function showAccount(account: AccountRecord, options: JsonOption, terminal: Terminal): void {
  printResult(terminal, options, withoutCredentials(account), toLine(account));
}
function toLine(account: AccountRecord): string {
  const { id, login, name, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const signInMethods = [
    ...(passwordHash === null ? [] : ['password']),
    ...(passkeys.length === 0 ? [] : [plural(passkeys.length, 'passkey')]),
    ...(openId === null ? [] : [openId.issuer]),
    ...(invitation === null ? [] : [`link until ${new Date(invitation.expiresAt).toISOString()}`]),
  ];
  const rights = [
    ...(isAdministrator ? ['administrator'] : []),
    ...roles.map(({ projectId, role }) => `${role} of ${projectId}`),
  ];
  const joinOrDash = (values: readonly string[]) => (values.length === 0 ? '-' : values.join(', '));
  return [id, login || '-', name || '-', state, joinOrDash(rights), joinOrDash(signInMethods)].join('  ');
}
