import type { Action } from '@playline/access-keys';
import {
  type AccountContext,
  type AccountRecord,
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
import { disclosure, field, hidden, table } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { type MembersParts, toInvited, toState } from '../members/page.ts';
import { contextOf } from '../sign-in/parts.ts';

const PATH = '/instance/accounts';

/** All accounts of the instance, for administrators. */
export function createAccountsPage(parts: MembersParts): PortalPage {
  const change = (action: Action, act: (context: AccountContext, id: string) => Promise<unknown>): FormAction => ({
    access: action,
    needsFreshSignIn: true,
    run: async (visit, values) => {
      await act(contextOf(parts, visit), values.text('account'));
      return { kind: 'see', to: PATH, notice: 'changed' };
    },
  });
  const administrator = (isAdministrator: boolean) =>
    change('accounts.change', (context, accountId) => setAdministrator(context, { accountId, isAdministrator }));
  return {
    path: PATH,
    access: 'accounts.read',
    notices: { changed: 'The account is changed, and its sessions have ended.' },
    show: async (visit, fault) => {
      const accounts = (await parts.accounts.all()).filter((account) => !isRemoved(account));
      return { kind: 'page', title: 'Accounts', content: toContent(visit, accounts, fault?.values) };
    },
    actions: {
      invite: inviting(parts),
      revoke: change('accounts.invite', revokeInvitation),
      appoint: administrator(true),
      dismiss: administrator(false),
      disable: change('accounts.change', disableAccount),
      enable: change('accounts.change', enableAccount),
      remove: removing(parts),
    },
  };
}

const inviting = (parts: MembersParts): FormAction => ({
  access: 'accounts.invite',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const wanted = { name: values.text('name'), roles: [], isAdministrator: true };
    const { text } = await invite(contextOf(parts, visit), wanted);
    return toInvited(parts.frame.origin, text, PATH);
  },
});

const removing = (parts: MembersParts): FormAction => ({
  access: 'accounts.remove',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const account = (await parts.accounts.all()).find(({ id }) => id === values.text('account'));
    if (account !== undefined && values.text('confirm') !== account.login)
      throw invalidField('confirm', `Type the login, ${account.login}, to remove the account.`);
    await removeAccount(contextOf(parts, visit), values.text('account'));
    return { kind: 'see', to: PATH, notice: 'changed' };
  },
});

function toContent(visit: Visit, accounts: readonly AccountRecord[], values?: FormValues): HtmlValue {
  const rows = accounts
    .toSorted((a, b) => a.createdAt - b.createdAt)
    .map((account) => [
      account.name,
      account.login,
      toState(account),
      toRights(account),
      toWays(account),
      toButtons(visit, account),
    ]);
  const form = visit.form(
    'invite',
    html`<p>Members of a project are invited on its own page.</p>
${field({ name: 'name', label: 'Name of the person', value: values?.text('name') ?? '', isRequired: true, charactersMax: 200 })}<button>Make the link</button>`,
  );
  return html`<p>Whoever has lost password and passkeys is let in again by a command: <code>npm run accounts -- reset</code>.</p>
${table('Accounts', ['Name', 'Login', 'State', 'May', 'Signs in with', ''], rows)}
${disclosure('Invite an administrator', form, values?.text('deed') === 'invite')}`;
}

function toRights({ isAdministrator, roles }: AccountRecord): string {
  const own = isAdministrator ? ['administrator'] : [];
  return [...own, ...roles.map(({ projectId, role }) => `${role} of ${projectId}`)].join(', ') || '–';
}

function toWays({ passwordHash, passkeys, openId }: AccountRecord): string {
  const ways = [
    ...(passwordHash === null ? [] : ['password']),
    ...passkeys.map(({ name }) => name),
    ...(openId === null ? [] : [openId.issuer]),
  ];
  return ways.join(', ') || '–';
}

function toButtons(visit: Visit, account: AccountRecord): HtmlValue {
  const named = hidden('account', account.id);
  const button = (deed: string, text: string) =>
    visit.form(deed, html`${named}<button class="plain">${text}<span class="unseen"> ${account.name}</span></button>`, {
      className: 'inline',
    });
  if (account.state === 'invited') return button('revoke', 'Take the invitation back');
  const remove = visit.form(
    'remove',
    html`${named}${field({ name: 'confirm', label: `Type ${account.login} to remove the account for ever`, isRequired: true })}<button class="danger">Remove</button>`,
  );
  return html`${account.isAdministrator ? button('dismiss', 'No longer administrator') : button('appoint', 'Make administrator')}
${account.state === 'disabled' ? button('enable', 'Enable') : button('disable', 'Disable')}
${disclosure('Remove', remove)}`;
}
