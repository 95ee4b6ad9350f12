/** The page on which administrators manage all accounts. */
import {
  type AccountContext,
  type AccountRecord,
  type Action,
  disableAccount,
  enableAccount,
  invite,
  isRemoved,
  removeAccount,
  revokeInvitation,
  setAdministrator,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { buttonForm, disclosure, field, hidden, table } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';
import { toInvitationPage, toInvitationState } from '../members/page.ts';
import { toContext } from '../sign-in/parts.ts';

const PATH = '/instance/accounts';

export function createAccountsPage(parts: PageParts): PortalPage {
  const change = (access: Action, run: (context: AccountContext, id: string) => Promise<unknown>): FormAction => ({
    access,
    needsFreshSignIn: true,
    run: async (visit, values) => {
      await run(toContext(parts, visit), values.text('account'));
      return { kind: 'redirect', notice: 'changed' };
    },
  });
  const setAdministratorTo = (isAdministrator: boolean) =>
    change('accounts.change', (context, accountId) => setAdministrator(context, { accountId, isAdministrator }));
  return {
    path: PATH,
    access: 'accounts.read',
    notices: { changed: 'Account updated. All of its sessions have ended.' },
    show: async (visit, failure) => {
      const accounts = (await parts.accounts.all()).filter((account) => !isRemoved(account));
      return { kind: 'page', title: 'Accounts', content: toContent(visit, accounts, failure?.values) };
    },
    actions: {
      invite: inviteAction(parts),
      revoke: change('accounts.invite', revokeInvitation),
      promote: setAdministratorTo(true),
      demote: setAdministratorTo(false),
      disable: change('accounts.change', disableAccount),
      enable: change('accounts.change', enableAccount),
      remove: removeAction(parts),
    },
  };
}

const inviteAction = (parts: PageParts): FormAction => ({
  access: 'accounts.invite',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const invitation = { name: values.text('name'), roles: [], isAdministrator: true };
    const { text: code } = await invite(toContext(parts, visit), invitation);
    return toInvitationPage(parts.frame.origin, code, PATH);
  },
});

const removeAction = (parts: PageParts): FormAction => ({
  access: 'accounts.remove',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const id = values.text('account');
    const account = (await parts.accounts.all()).find((each) => each.id === id);
    if (account !== undefined && values.text('confirm') !== account.login)
      throw invalidField('confirm', `Type the login, ${account.login}, to remove this account.`);
    await removeAccount(toContext(parts, visit), id);
    return { kind: 'redirect', notice: 'changed' };
  },
});

function toContent(visit: Visit, accounts: readonly AccountRecord[], values?: FormValues): HtmlValue {
  const rows = accounts
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .map((account) => ({
      cells: [
        account.name,
        account.login || '–',
        toInvitationState(account),
        toRoles(account, visit.projects),
        toSignInMethods(account),
      ],
      detail: toButtons(visit, account),
      isOpen: values?.text('account') === account.id,
    }));
  const form = visit.form(
    'invite',
    html`<p>To invite someone to a project, use the project's Members page.</p>
${field({ name: 'name', label: 'Name', value: values?.text('name') ?? '', isRequired: true, maxLength: 200 })}<button>Create invitation</button>`,
  );
  return html`<p class="muted">To restore access for someone who has lost their password and passkeys, run <code>npm run accounts -- reset</code>.</p>
${table('Accounts', ['Name', 'Login', 'State', 'Roles', 'Sign-in methods'], rows)}
${disclosure('Invite an administrator', form, values?.text('form') === 'invite')}`;
}

function toRoles({ isAdministrator, roles }: AccountRecord, projects: Visit['projects']): string {
  const nameOf = (projectId: string) => projects.find(({ id }) => id === projectId)?.name ?? projectId;
  const projectRoles = roles.map(({ projectId, role }) => `${role} in ${nameOf(projectId)}`);
  return [...(isAdministrator ? ['administrator'] : []), ...projectRoles].join(', ') || '–';
}

function toSignInMethods({ passwordHash, passkeys, openId }: AccountRecord): string {
  const methods = passkeys.map(({ name }) => name);
  if (passwordHash !== null) methods.unshift('password');
  if (openId !== null) methods.push(openId.issuer);
  return methods.join(', ') || '–';
}

function toButtons(visit: Visit, account: AccountRecord): HtmlValue {
  const { id, name } = account;
  const button = (action: string, text: string) =>
    buttonForm(visit, action, { text, name, field: 'account', value: id });
  if (account.state === 'invited') return button('revoke', 'Revoke invitation');
  const remove = visit.form(
    'remove',
    html`${hidden('account', id)}${field({ name: 'confirm', label: `Type ${account.login} to remove this account permanently`, isRequired: true })}<button class="danger">Remove account</button>`,
  );
  return html`${account.isAdministrator ? button('demote', 'Remove administrator role') : button('promote', 'Make administrator')}
${account.state === 'disabled' ? button('enable', 'Enable') : button('disable', 'Disable')}
${disclosure('Remove account', remove)}`;
}
