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
  type OneTimeTexts,
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
  type Work as CommandWork,
  type CreateCommand,
  command,
  confirm,
  type JsonOption,
  jsonCommand,
  printResult,
  type Terminal,
  UnreachableError,
  UsageError,
  yesOption,
} from '../command.ts';
import { type ProjectSources, requireProjectId } from '../projects/environments.ts';
import { type RecordSources, withPair, withRecords } from '../records/record-access.ts';

const ABOUT = `
A link is printed once and not stored. Anyone who has the link can use it once. The last administrator and the last
owner of a project cannot be removed, disabled or given a lower role.

Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a local stack.`;

const FIRST_LINK_MINUTES = FIRST_LINK_LIFETIME_S / 60;
const INVITATION_HOURS = INVITATION_MS / 3_600_000;

type Work = CommandWork<AccountsContext>;

type Change = (accounts: AccountContext, id: string) => Promise<AccountRecord>;
const origin = () =>
  new Option('--origin <origin>', 'origin of the portal (https://portal.example.com); by default the local stack');

const ofAccount = (name: string, description: string) =>
  jsonCommand(name, description).requiredOption('--account <account>', 'id or login of the account');

const changing = (work: Work, name: string, description: string, change: Change) =>
  ofAccount(name, description).action((options) => changeAccount(work, options, change));

export const createAccountsCommand =
  (context: AccountsContext): CreateCommand =>
  (terminal) => {
    const work: Work = { context, terminal };
    const unlink: Change = (accounts, accountId) => unlinkOpenId(accounts, { accountId });
    return command('accounts', 'manage accounts of people who sign in to the portal')
      .addCommand(link(work))
      .addCommand(list(work))
      .addCommand(inviteOne(work))
      .addCommand(changing(work, 'revoke', 'revoke an invitation', revokeInvitation))
      .addCommand(roles(work))
      .addCommand(administrator(work))
      .addCommand(changing(work, 'disable', 'prevent an account from signing in, and end its sessions', disableAccount))
      .addCommand(changing(work, 'enable', 'let a disabled account sign in again', enableAccount))
      .addCommand(reset(work))
      .addCommand(
        changing(work, 'unlink', 'remove the OpenID Connect provider; another way to sign in must exist', unlink),
      )
      .addCommand(remove(work))
      .addHelpText('after', ABOUT);
  };

const link = ({ context, terminal }: Work) =>
  jsonCommand('link', 'print the link that creates the first administrator')
    .addOption(origin())
    .addHelpText(
      'after',
      `\nThe link is valid for ${FIRST_LINK_MINUTES} minutes. Refused if there is an administrator.`,
    )
    .action(async (options) => {
      const portal = originOf(context, options.origin);
      // Only the log shows whether there is an administrator.
      const code = await withAccounts(context, (_, oneTimeTexts) =>
        withPair(context.accounts, ({ log }) => issueFirstLink({ log, oneTimeTexts })),
      );
      const url = linkTo(portal, '/first-sign-in', code);
      terminal.progress(
        `The first person who opens this link becomes administrator. Valid once, for ${FIRST_LINK_MINUTES} minutes:`,
      );
      printResult(terminal, options, { link: url }, url);
    });

const list = ({ context, terminal }: Work) =>
  jsonCommand('list', 'list accounts: state, administrator, roles, ways to sign in').action(async (options) => {
    const accounts = (await withAccounts(context, ({ store }) => store.readAll()))
      .filter((account) => !isRemoved(account))
      .toSorted((a, b) => a.createdAt - b.createdAt);
    for (const account of accounts) showAccount(account, options, terminal);
    if (accounts.length === 0)
      terminal.progress('no accounts: npm run accounts -- link prints the link for the first administrator');
  });

const inviteOne = (work: Work) =>
  jsonCommand('invite', 'create an account and print its invitation link')
    .requiredOption('--name <name>', 'name of the person')
    .option('--project <project>', 'id or name of a project, with --role')
    .addOption(new Option('--role <role>', 'role of the person in the project').choices(ROLES))
    .option('--administrator', 'grant the administrator role for the whole instance')
    .addOption(origin())
    .addHelpText(
      'after',
      `\nThe link is valid for ${INVITATION_HOURS} hours. A person who has an account keeps it and gets the role.`,
    )
    .action(async ({ name, project, role, administrator: isAdministrator = false, ...options }) => {
      const { context } = work;
      if (project === undefined && !isAdministrator)
        throw new UsageError('Expected --project with --role, or --administrator.');
      if (project !== undefined && role === undefined) throw new UsageError('Expected --role with --project.');
      const portal = originOf(context, options.origin);
      const projectId = project === undefined ? null : await requireProjectId(context, project);
      const granted = projectId === null || role === undefined ? [] : [{ projectId, role }];
      const invited = await withAccounts(context, (accounts) =>
        invite(accounts, { name, roles: granted, isAdministrator }),
      );
      showLink(work, invited, { url: linkTo(portal, '/invitation', invited.text), ...options });
    });

const roles = (work: Work) =>
  ofAccount('roles', 'set the role of an account in a project, and end its sessions')
    .requiredOption('--project <project>', 'id or name of the project')
    .addOption(
      new Option('--role <role>', 'role in the project; none removes the account from it')
        .choices([...ROLES, 'none'] as const)
        .makeOptionMandatory(),
    )
    .action(async (options) => {
      const projectId = await requireProjectId(work.context, options.project);
      const role = options.role === 'none' ? null : options.role;
      await changeAccount(work, options, (accounts, accountId) => setRole(accounts, { accountId, projectId, role }));
    });

const administrator = (work: Work) =>
  ofAccount('administrator', 'grant or revoke the administrator role of an account')
    .addOption(
      new Option('--is <answer>', 'whether the account is an administrator')
        .choices(['yes', 'no'] as const)
        .makeOptionMandatory(),
    )
    .action((options) =>
      changeAccount(work, options, (accounts, accountId) =>
        setAdministrator(accounts, { accountId, isAdministrator: options.is === 'yes' }),
      ),
    );

const reset = (work: Work) =>
  ofAccount('reset', 'remove password, passkeys and provider of an account, and print a link to sign in')
    .addOption(origin())
    .addHelpText('after', '\nFor a person who can no longer sign in.')
    .action(async (options) => {
      const portal = originOf(work.context, options.origin);
      const invited = await withAccounts(work.context, async (accounts) =>
        resetAccess(accounts, (await requireAccount(accounts, options.account)).id),
      );
      const path = invited.account.state === 'invited' ? '/invitation' : '/reset';
      showLink(work, invited, { url: linkTo(portal, path, invited.text), ...options });
    });

const remove = (work: Work) =>
  ofAccount('remove', 'permanently end an account and erase its name and login')
    .addOption(yesOption())
    .action(async (options) => {
      const { id, name } = await withAccounts(work.context, (accounts) => requireAccount(accounts, options.account));
      const effect = `This ends the account ${id} (${name}) forever, and erases its name and login.`;
      await confirm(effect, options, work.terminal);
      await changeAccount(work, { account: id, json: options.json }, removeAccount);
    });

async function changeAccount(
  { context, terminal }: Work,
  options: JsonOption & { readonly account: string },
  change: Change,
): Promise<void> {
  const changed = await withAccounts(context, async (accounts) =>
    change(accounts, (await requireAccount(accounts, options.account)).id),
  );
  showAccount(changed, options, terminal);
}

function showLink({ terminal }: Work, { account }: Invited, { url, json = false }: JsonOption & { url: string }): void {
  if (!json) terminal.progress(`Link for ${account.name}. Valid once, for ${INVITATION_HOURS} hours:`);
  printResult(terminal, { json }, { account: account.id, link: url, expiresAt: account.invitation?.expiresAt }, url);
}

interface AccountsContext extends ProjectSources {
  readonly accounts: RecordSources<AccountRecord>;
  openSessions(): Promise<SessionStores>;
  /** Origin of the local stack's portal; null without a local stack. */
  portal(): string | null;
}

/** Reads or changes accounts; the user of the command is the author. @throws UnreachableError */
export async function withAccounts<T>(
  { accounts, openSessions }: AccountsContext,
  work: (context: AccountContext, oneTimeTexts: OneTimeTexts) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await openSessions(), ({ sessions, oneTimeTexts }) =>
    withRecords(accounts, (store) => work({ store, sessions, actorId: null }, oneTimeTexts)),
  );
}

/** @param wanted id or login */
async function requireAccount({ store }: AccountContext, wanted: string): Promise<AccountRecord> {
  const accounts = await store.readAll();
  const found = accounts.find(({ id }) => id === wanted) ?? findByLogin(accounts, wanted);
  if (found === null || isRemoved(found))
    throw new Error(`there is no account ${wanted}: npm run accounts -- list shows all accounts`);
  return found;
}

/** @throws UsageError for an invalid origin; UnreachableError without an origin and a local stack */
function originOf({ portal }: Pick<AccountsContext, 'portal'>, given: string | undefined): string {
  if (given === undefined) {
    const running = portal();
    if (running !== null) return running;
    throw new UnreachableError(
      'no portal runs here: start it (npm run up), or use --origin https://portal.example.com',
    );
  }
  const url = URL.parse(given);
  if (url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw new UsageError('--origin: expected a URL without a path, such as https://portal.example.com');
}

function linkTo(origin: string, path: string, code: string): string {
  const url = new URL(path, origin);
  url.searchParams.set('code', code);
  return url.href;
}

/** The printable part of an account: no credentials. */
function toShown({ passwordHash, passkeys, invitation, openId, ...account }: AccountRecord) {
  return {
    ...account,
    hasPassword: passwordHash !== null,
    passkeys: passkeys.map(({ name, createdAt }) => ({ name, createdAt })),
    openIdIssuer: openId?.issuer ?? null,
    linkExpiresAt: invitation?.expiresAt ?? null,
  };
}

function showAccount(account: AccountRecord, options: JsonOption, terminal: Terminal): void {
  printResult(terminal, options, toShown(account), toLine(account));
}
function toLine(account: AccountRecord): string {
  const { id, login, name, state, isAdministrator, roles, passwordHash, passkeys, openId, invitation } = account;
  const ways = [
    ...(passwordHash === null ? [] : ['password']),
    ...(passkeys.length === 0 ? [] : [`${passkeys.length} passkeys`]),
    ...(openId === null ? [] : [openId.issuer]),
    ...(invitation === null ? [] : [`link until ${new Date(invitation.expiresAt).toISOString()}`]),
  ];
  const rights = [
    ...(isAdministrator ? ['administrator'] : []),
    ...roles.map(({ projectId, role }) => `${role} of ${projectId}`),
  ];
  const orNone = (texts: readonly string[]) => (texts.length === 0 ? '-' : texts.join(', '));
  return [id, login || '-', name || '-', state, orNone(rights), orNone(ways)].join('  ');
}
