/** The settings of the signed-in user: name, password, passkeys, identity provider and sessions. */
import {
  type AccountRecord,
  addPasskey,
  isSessionOf,
  type Passkey,
  removePasskey,
  renameAccount,
  type SessionRecord,
  setPassword,
  unlinkOpenId,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { buttonForm, disclosure, field, keyValues, panel, table, time } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { signedInOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { formOrigins, openIdForm, redirectToProvider } from '../sign-in/open-id.ts';
import {
  beginSession,
  newPasswordFields,
  PASSKEY_SCRIPTS,
  passkeyButton,
  readNewPassword,
  readPasskeyResponse,
  respondJson,
  toContext,
} from '../sign-in/parts.ts';

const PATH = '/settings';

export function createSettingsPage(parts: PageParts): PortalPage {
  return {
    path: PATH,
    access: 'signed in',
    notices: {
      renamed: 'Name changed.',
      password: 'Password changed. Your other sessions have ended.',
      'passkey-added': 'Passkey added. Your other sessions have ended.',
      'passkey-removed': 'Passkey removed. Your other sessions have ended.',
      linked: 'You can now sign in with this provider. Your other sessions have ended.',
      unlinked: 'You can no longer sign in with this provider. Your other sessions have ended.',
      ended: 'Session ended.',
    },
    show: async (visit, failure) => {
      const { account, session } = signedInOf(visit);
      const sessions = (await parts.sessions.list(account.id)).filter((each) => isSessionOf(each, account));
      const content = html`${toProfile(visit, account, failure?.values)}${toPasskeys(visit, account)}${toOpenId(parts, visit, account)}${toSessions(visit, sessions, session)}`;
      return { kind: 'page', title: 'Settings', content, scripts: PASSKEY_SCRIPTS, ...formOrigins(parts) };
    },
    actions: {
      rename: {
        access: 'signed in',
        run: async (visit, values) => {
          const accountId = signedInOf(visit).account.id;
          await renameAccount(toContext(parts, visit), { accountId, name: values.text('name') });
          return { kind: 'redirect', notice: 'renamed' };
        },
      },
      ...credentialActions(parts),
      ...linkAction(parts),
      end: endAction(parts),
      'end-others': {
        access: 'signed in',
        run: async (visit) => {
          const { account, session } = signedInOf(visit);
          await parts.sessions.endAll(account.id, session.id);
          const detail = { which: 'all others' };
          await parts.writeAudit(visit, { action: 'session.end', object: account.id, detail });
          return { kind: 'redirect', notice: 'ended' };
        },
      },
    },
  };
}

export function createPasskeyCreationPage({ signIn }: PageParts): PortalPage {
  return {
    path: `${PATH}/passkey`,
    access: 'signed in',
    show: async (visit) => respondJson(visit, await signIn.passkeyCreation(signedInOf(visit).account)),
  };
}

/** Changing a credential ends all sessions of the account. The browser that submits the change gets a new session. */
function credentialActions(parts: PageParts): Readonly<Record<string, FormAction>> {
  const change = (
    notice: string,
    run: (visit: Visit, account: AccountRecord, values: FormValues) => Promise<AccountRecord>,
  ): FormAction => ({
    access: 'signed in',
    needsFreshSignIn: true,
    run: async (visit, values) => {
      const account = await run(visit, signedInOf(visit).account, values);
      return { kind: 'redirect', notice, cookie: await beginSession(parts, visit, { account }) };
    },
  });
  return {
    password: change('password', async (visit, { id: accountId, login }, values) => {
      const passwordHash = await parts.passwords.hash({ password: readNewPassword(values), login });
      return setPassword(toContext(parts, visit), { accountId, passwordHash });
    }),
    'add-passkey': change('passkey-added', async (visit, { id: accountId }, values) => {
      const created = { response: readPasskeyResponse(values), name: values.text('name') };
      const { ownerId, passkey } = await parts.signIn.readPasskey(created);
      if (ownerId !== accountId) throw invalidField('response', 'This passkey was created for another account.');
      return addPasskey(toContext(parts, visit), { accountId, passkey });
    }),
    'remove-passkey': change('passkey-removed', (visit, { id: accountId }, values) =>
      removePasskey(toContext(parts, visit), { accountId, passkeyId: values.text('passkey') }),
    ),
    'unlink-openid': change('unlinked', async (visit, { id: accountId }) => {
      const changed = await unlinkOpenId(toContext(parts, visit), { accountId });
      await parts.writeAudit(visit, { action: 'openid.unlink', object: accountId });
      return changed;
    }),
  };
}

/** Redirects to the provider. The callback then links the account. */
function linkAction({ openId, frame }: PageParts): Readonly<Record<string, FormAction>> {
  if (openId === null) return {};
  const run: FormAction['run'] = async (visit) => {
    const { account, session } = signedInOf(visit);
    if (account.openId !== null) throw invalidField('openid', 'The account is already linked. Unlink it first.');
    return redirectToProvider({ openId, frame }, { purpose: { kind: 'link', sessionId: session.id } });
  };
  return { 'link-openid': { access: 'signed in', needsFreshSignIn: true, run } };
}

const endAction = ({ sessions, writeAudit }: PageParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    const { account } = signedInOf(visit);
    const id = values.text('session');
    // Ignores sessions of other users.
    if ((await sessions.list(account.id)).some((each) => each.id === id)) {
      await sessions.end(id);
      await writeAudit(visit, { action: 'session.end', object: account.id, detail: { which: 'one' } });
    }
    return { kind: 'redirect', notice: 'ended' };
  },
});

function toProfile(visit: Visit, account: AccountRecord, values?: FormValues): HtmlValue {
  const submittedForm = values?.text('form') ?? '';
  const name = submittedForm === 'rename' ? (values?.text('name') ?? '') : account.name;
  const rename = visit.form(
    'rename',
    html`${field({ name: 'name', label: 'Your name', value: name, isRequired: true, maxLength: 200, autocomplete: 'name' })}<button>Save name</button>`,
  );
  const change = visit.form(
    'password',
    html`${newPasswordFields({ label: 'New password', isRequired: true })}<button>Save password</button>`,
  );
  const title = account.passwordHash === null ? 'Set a password' : 'Change password';
  const names = keyValues([
    ['Login', account.login],
    ['Name', account.name],
  ]);
  const forms = html`${disclosure('Change name', rename, submittedForm === 'rename')}
${disclosure(title, change, submittedForm === 'password')}`;
  return panel('Profile', html`${names}${forms}`);
}

function toPasskeys(visit: Visit, { passkeys }: AccountRecord): HtmlValue {
  const toRow = ({ id, name, createdAt }: Passkey) => [
    name,
    time(createdAt),
    buttonForm(visit, 'remove-passkey', { text: 'Remove', name, field: 'passkey', value: id }),
  ];
  const add = visit.form(
    'add-passkey',
    html`${field({ name: 'name', label: 'Passkey name', value: 'My device', isRequired: true, maxLength: 200 })}
${passkeyButton('create', `${PATH}/passkey`, 'Create passkey')}`,
  );
  const list =
    passkeys.length === 0
      ? html`<p class="muted">No passkeys yet. Add one to sign in with your phone or computer instead of a password.</p>`
      : table('Passkeys', ['Name', 'Created', ''], passkeys.map(toRow));
  const form = disclosure('Add a passkey', html`${add}<noscript><p>Passkeys require JavaScript.</p></noscript>`);
  return panel('Passkeys', html`${list}${form}`);
}

/** Shows an existing link even if no provider is configured, so that users can remove it. */
function toOpenId(parts: PageParts, visit: Visit, { openId }: AccountRecord): HtmlValue {
  if (openId === null && parts.openId === null) return '';
  const content =
    openId === null
      ? openIdForm(parts, visit, { action: 'link-openid', text: 'Link' })
      : html`<p>You can sign in with <code>${openId.issuer}</code>.</p>${visit.form('unlink-openid', html`<button>Unlink</button>`)}`;
  return panel(parts.openId?.label ?? 'Identity provider', content);
}

function toSessions(visit: Visit, sessions: readonly SessionRecord[], currentSession: SessionRecord): HtmlValue {
  const toRow = (session: SessionRecord) => [
    session.userAgent === '' ? 'unknown' : session.userAgent,
    session.address,
    time(session.createdAt),
    time(session.seenAt),
    session.id === currentSession.id
      ? 'this session'
      : buttonForm(visit, 'end', { text: 'End', name: 'this session', field: 'session', value: session.id }),
  ];
  const columns = ['Browser', 'IP address', 'Signed in', 'Last seen', ''];
  const actions = visit.form('end-others', html`<button class="outline">End all other sessions</button>`);
  return panel('Your sessions', table('Sessions', columns, sessions.map(toRow)), {
    actions: sessions.length > 1 ? actions : '',
  });
}
