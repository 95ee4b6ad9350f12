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
  type OpenSessions,
  ROLES,
  removeAccount,
  resetAccess,
  revokeInvitation,
  setAdministrator,
  setRole,
  unlinkOpenId,
} from '@playline/access-keys';
import { withStore } from '../await-store.ts';
import {
  type Command,
  choiceOf,
  EXIT,
  type ExitCode,
  isMeant,
  parseOptions,
  requiredOf,
  type Terminal,
  textOf,
  UnreachableError,
  UsageError,
  type Values,
  wordOf,
} from '../command.ts';
import { type ProjectSources, requireProjectId } from '../projects/environments.ts';
import { type RecordSources, withPair, withRecords } from '../records/record-access.ts';

const HELP = `usage: operator accounts link [--origin O] [--json]
       operator accounts list [--json]
       operator accounts invite --name N [--project P --role R] [--administrator] [--origin O] [--json]
       operator accounts revoke --account A [--json]
       operator accounts roles --account A --project P --role owner|developer|analyst|none [--json]
       operator accounts administrator --account A --is yes|no [--json]
       operator accounts disable|enable --account A [--json]
       operator accounts reset --account A [--origin O] [--json]
       operator accounts unlink --account A [--json]
       operator accounts remove --account A [--yes] [--json]
                                                                (npm run accounts -- …)

Accounts of people who sign in to the portal. Links are printed once and kept nowhere; whoever has one can use it, once.

  link           the link that makes the first administrator, good for 15 minutes; refused when the log has one
  list           accounts: state, administrator, roles, ways to sign in
  invite         makes an account and the link that lets somebody in, good for 72 hours; whoever has an account already
                 takes it with that one, and gets the role there
                 --project P --role R   what they are to be there;  --administrator   of the whole instance
  revoke         takes an invitation back
  roles          what an account is in a project; none takes it out. Its sessions end
  administrator  makes an account an administrator of the instance, or no longer
  disable        keeps an account from signing in until enable; its sessions end
  reset          for somebody who has lost all that they sign in with: password, passkeys and provider go, and a new link
                 lets them in
  unlink         its provider of OpenID Connect lets the account in no longer; a password or a passkey must be left
  remove         ends an account for ever, and erases its name and login; asks, or takes --yes

  --account A  id or login;  --project P  id or name;  --json  JSON, one a line
  --origin O   of the portal, such as https://portal.example.com; that of the stack that runs here without it

The last administrator, and the last owner of a project, stay.
Needs REDIS_URL, KAFKA_BROKERS and SCHEMA_REGISTRY_URL, or a stack that runs here (.playline/stack.json).`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const OF_ACCOUNT = { account: text, json: flag } as const;

/** What an action of the command works with. */
interface Work {
  readonly context: AccountsContext;
  readonly values: Values;
  readonly terminal: Terminal;
}

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly prepare: (values: Values, context: AccountsContext) => (work: Work) => Promise<ExitCode>;
}

/** Changes the named account, and shows it. */
const changing =
  (wanted: string, change: (accounts: AccountContext, id: string) => Promise<AccountRecord>) =>
  async ({ context, values, terminal }: Work): Promise<ExitCode> => {
    const changed = await withAccounts(context, async (accounts) =>
      change(accounts, (await requireAccount(accounts, wanted)).id),
    );
    showAccount(changed, values.json === true, terminal);
    return EXIT.ok;
  };

const onAccount = (change: (accounts: AccountContext, id: string) => Promise<AccountRecord>): Word => ({
  options: OF_ACCOUNT,
  prepare: (values) => changing(requiredOf(values, 'account'), change),
});

const WORDS: Readonly<Record<string, Word>> = {
  link: { options: { origin: text, json: flag }, prepare: prepareLink },
  list: { options: { json: flag }, prepare: () => list },
  invite: {
    options: { name: text, project: text, role: text, administrator: flag, origin: text, json: flag },
    prepare: prepareInvite,
  },
  revoke: onAccount(revokeInvitation),
  roles: { options: { ...OF_ACCOUNT, project: text, role: text }, prepare: prepareRoles },
  administrator: {
    options: { ...OF_ACCOUNT, is: text },
    prepare: (values) => {
      const isAdministrator = choiceOf(values, 'is', { choices: ['yes', 'no'] }) === 'yes';
      return changing(requiredOf(values, 'account'), (accounts, accountId) =>
        setAdministrator(accounts, { accountId, isAdministrator }),
      );
    },
  },
  disable: onAccount(disableAccount),
  enable: onAccount(enableAccount),
  reset: { options: { ...OF_ACCOUNT, origin: text }, prepare: prepareReset },
  unlink: onAccount((accounts, accountId) => unlinkOpenId(accounts, { accountId })),
  remove: { options: { ...OF_ACCOUNT, yes: flag }, prepare: prepareRemove },
};

export function createAccountsCommand(context: AccountsContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values } = parseOptions(rest, word.options);
    return word.prepare(values, context)({ context, values, terminal });
  };
  const summary = 'accounts of people who sign in to the portal: link, list, invite, change, reset and remove';
  return { name: 'accounts', summary, help: HELP, run };
}

function prepareLink(values: Values, context: AccountsContext) {
  const origin = originOf(context, textOf(values, 'origin'));
  return async ({ terminal }: Work): Promise<ExitCode> => {
    // Only the log says whether there is an administrator.
    const code = await withAccounts(context, (_, oneTimeTexts) =>
      withPair(context.accounts, ({ log }) => issueFirstLink({ log, oneTimeTexts })),
    );
    const link = linkTo(origin, '/first-sign-in', code);
    terminal.progress(`Whoever opens it first is administrator. Good for ${FIRST_LINK_LIFETIME_S / 60} minutes, once:`);
    terminal.result(values.json === true ? JSON.stringify({ link }) : link);
    return EXIT.ok;
  };
}

async function list({ context, values, terminal }: Work): Promise<ExitCode> {
  const accounts = await withAccounts(context, ({ store }) => store.readAll());
  listAccounts(accounts, values.json === true, terminal);
  return EXIT.ok;
}

function prepareInvite(values: Values, context: AccountsContext) {
  const origin = originOf(context, textOf(values, 'origin'));
  const [name, project, isAdministrator] = [
    requiredOf(values, 'name'),
    textOf(values, 'project'),
    values.administrator === true,
  ];
  if (project === undefined && !isAdministrator)
    throw new UsageError('--project with --role, or --administrator: expected what the person is to be');
  const role = project === undefined ? null : choiceOf(values, 'role', { choices: ROLES });
  return async (work: Work): Promise<ExitCode> => {
    const projectId = project === undefined ? null : await requireProjectId(context, project);
    const roles = projectId === null || role === null ? [] : [{ projectId, role }];
    const invited = await withAccounts(context, (accounts) => invite(accounts, { name, roles, isAdministrator }));
    return showLink(work, invited, linkTo(origin, '/invitation', invited.text));
  };
}

function prepareRoles(values: Values) {
  const choices = [...ROLES, 'none'] as const;
  const [account, project, chosen] = [
    requiredOf(values, 'account'),
    requiredOf(values, 'project'),
    choiceOf(values, 'role', { choices }),
  ];
  const role = chosen === 'none' ? null : chosen;
  return async (work: Work): Promise<ExitCode> => {
    const projectId = await requireProjectId(work.context, project);
    return changing(account, (accounts, accountId) => setRole(accounts, { accountId, projectId, role }))(work);
  };
}

function prepareReset(values: Values, context: AccountsContext) {
  const [wanted, origin] = [requiredOf(values, 'account'), originOf(context, textOf(values, 'origin'))];
  return async (work: Work): Promise<ExitCode> => {
    const invited = await withAccounts(context, async (accounts) =>
      resetAccess(accounts, (await requireAccount(accounts, wanted)).id),
    );
    const path = invited.account.state === 'invited' ? '/invitation' : '/reset';
    return showLink(work, invited, linkTo(origin, path, invited.text));
  };
}

function showLink({ values, terminal }: Work, { account }: Invited, link: string): ExitCode {
  if (values.json === true) {
    terminal.result(JSON.stringify({ account: account.id, link, expiresAt: account.invitation?.expiresAt }));
    return EXIT.ok;
  }
  terminal.progress(`For ${account.name}. Good for ${INVITATION_MS / 3_600_000} hours, once:`);
  terminal.result(link);
  return EXIT.ok;
}

function prepareRemove(values: Values) {
  const wanted = requiredOf(values, 'account');
  return async (work: Work): Promise<ExitCode> => {
    const { id, name } = await withAccounts(work.context, (accounts) => requireAccount(accounts, wanted));
    const what = `Ends the account ${id} (${name}) for ever, and erases its name and login.`;
    if (!(await isMeant(what, values, work.terminal))) return EXIT.failed;
    return changing(id, removeAccount)(work);
  };
}

interface AccountsContext extends ProjectSources {
  readonly accounts: RecordSources<AccountRecord>;
  openSessions(): Promise<OpenSessions>;
  /** Origin of the portal of the local stack; null when there is none. */
  portal(): string | null;
}

/** Reads or changes accounts, with the user of the command as the author. @throws UnreachableError as `withRecords` */
export async function withAccounts<T>(
  { accounts, openSessions }: AccountsContext,
  work: (context: AccountContext, oneTimeTexts: OneTimeTexts) => Promise<T>,
): Promise<T> {
  return withStore('Redis', await openSessions(), ({ sessions, oneTimeTexts }) =>
    withRecords(accounts, (store) => work({ store, sessions, actorId: null }, oneTimeTexts)),
  );
}

/** @param wanted id or login. @throws Error with advice when there is no such account */
async function requireAccount({ store }: AccountContext, wanted: string): Promise<AccountRecord> {
  const accounts = await store.readAll();
  const found = accounts.find(({ id }) => id === wanted) ?? findByLogin(accounts, wanted);
  if (found === null || isRemoved(found))
    throw new Error(`there is no account ${wanted}: npm run accounts -- list shows those that there are`);
  return found;
}

/**
 * The origin of the portal.
 * @throws UsageError for an invalid origin; UnreachableError when none is given and no local stack has one
 */
function originOf({ portal }: Pick<AccountsContext, 'portal'>, given: string | undefined): string {
  if (given === undefined) {
    const running = portal();
    if (running !== null) return running;
    throw new UnreachableError(
      'no portal runs here: start it (npm run up), or say --origin https://portal.example.com',
    );
  }
  const url = URL.parse(given);
  if (url !== null && ['http:', 'https:'].includes(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw new UsageError('--origin: expected one as https://portal.example.com, without a path');
}

/** The address of a page, with its code. */
function linkTo(origin: string, path: string, code: string): string {
  const url = new URL(path, origin);
  url.searchParams.set('code', code);
  return url.href;
}

/** The printable part of an account: no hash, no public key, nothing that can be used to sign in. */
function toShown({ passwordHash, passkeys, invitation, openId, ...account }: AccountRecord) {
  return {
    ...account,
    hasPassword: passwordHash !== null,
    passkeys: passkeys.map(({ name, createdAt }) => ({ name, createdAt })),
    openIdIssuer: openId?.issuer ?? null,
    linkExpiresAt: invitation?.expiresAt ?? null,
  };
}

function showAccount(account: AccountRecord, isJson: boolean, terminal: Terminal): void {
  terminal.result(isJson ? JSON.stringify(toShown(account)) : toLine(account));
}

/** Lists accounts that are not removed, the oldest first. */
function listAccounts(accounts: readonly AccountRecord[], isJson: boolean, terminal: Terminal): void {
  const there = accounts.filter((account) => !isRemoved(account)).toSorted((a, b) => a.createdAt - b.createdAt);
  for (const account of there) showAccount(account, isJson, terminal);
  if (there.length === 0)
    terminal.progress(
      'There is no account: npm run accounts -- link prints the link that makes the first administrator.',
    );
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
  const orNone = (words: readonly string[]) => (words.length === 0 ? '-' : words.join(', '));
  return [id, login || '-', name || '-', state, orNone(rights), orNone(ways)].join('  ');
}
