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
import { disclosure, field, hidden, table, time } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { signedInOf } from '../../frame/scope.ts';
import { formsTo, openIdForm, redirectToProvider } from '../sign-in/open-id.ts';
import {
  answerJson,
  beginSession,
  contextOf,
  newPasswordFields,
  newPasswordOf,
  PASSKEY_SCRIPTS,
  passkeyButton,
  responseOf,
  type SignInPagesParts,
} from '../sign-in/parts.ts';

const PATH = '/settings';

/** What people change of their own account. */
export function createSettingsPage(parts: SignInPagesParts): PortalPage {
  return {
    path: PATH,
    access: 'signed in',
    notices: {
      renamed: 'You have your new name.',
      password: 'The password is changed. Every other session of yours has ended.',
      'passkey-added': 'The passkey is there. Every other session of yours has ended.',
      'passkey-removed': 'The passkey is gone. Every other session of yours has ended.',
      linked: 'You can sign in so from now on. Every other session of yours has ended.',
      unlinked: 'It lets you in no longer. Every other session of yours has ended.',
      ended: 'The session has ended.',
    },
    show: async (visit, fault) => {
      const { account, session } = signedInOf(visit);
      const sessions = (await parts.sessions.list(account.id)).filter((each) => isSessionOf(each, account));
      const content = html`${toProfile(visit, account, fault?.values)}${toPasskeys(visit, account)}${toOpenId(parts, visit, account)}${toSessions(visit, sessions, session)}`;
      return { kind: 'page', title: 'Settings', content, scripts: PASSKEY_SCRIPTS, ...formsTo(parts) };
    },
    actions: {
      rename: renaming(parts),
      password: changingPassword(parts),
      'add-passkey': addingPasskey(parts),
      'remove-passkey': removingPasskey(parts),
      ...linking(parts),
      'unlink-openid': unlinking(parts),
      end: ending(parts),
      'end-others': endingOthers(parts),
    },
  };
}

/** What the browser is to make for whoever has signed in. */
export function createPasskeyCreationPage({ signIn }: Pick<SignInPagesParts, 'signIn'>): PortalPage {
  return {
    path: `${PATH}/passkey`,
    access: 'signed in',
    show: async (visit) => answerJson(visit, await signIn.passkeyCreation(signedInOf(visit).account)),
  };
}

const renaming = (parts: SignInPagesParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    const { account } = signedInOf(visit);
    await renameAccount(contextOf(parts, visit), { accountId: account.id, name: values.text('name') });
    return { kind: 'see', to: PATH, notice: 'renamed' };
  },
});

/** Credentials change: all sessions end, and this browser gets another one. */
const changing = (
  parts: SignInPagesParts,
  notice: string,
  change: (visit: Visit, account: AccountRecord, values: FormValues) => Promise<AccountRecord>,
): FormAction => ({
  access: 'signed in',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const changed = await change(visit, signedInOf(visit).account, values);
    return { kind: 'see', to: PATH, notice, cookie: await beginSession(parts, visit, { account: changed }) };
  },
});

const changingPassword = (parts: SignInPagesParts) =>
  changing(parts, 'password', async (visit, { id: accountId, login }, values) => {
    const password = newPasswordOf(values);
    const passwordHash = await parts.passwords.hash({ password, login });
    return setPassword(contextOf(parts, visit), { accountId, passwordHash });
  });

const addingPasskey = (parts: SignInPagesParts) =>
  changing(parts, 'passkey-added', async (visit, { id: accountId }, values) => {
    const wanted = { response: responseOf(values), name: values.text('name') };
    const { ownerId, passkey } = await parts.signIn.readPasskey(wanted);
    if (ownerId !== accountId) throw invalidField('response', 'The passkey was made for somebody else.');
    return addPasskey(contextOf(parts, visit), { accountId, passkey });
  });

const removingPasskey = (parts: SignInPagesParts) =>
  changing(parts, 'passkey-removed', (visit, { id: accountId }, values) =>
    removePasskey(contextOf(parts, visit), { accountId, passkeyId: values.text('passkey') }),
  );

/** To the provider, where there is one; the page behind it does the rest. */
function linking({ openId, frame }: SignInPagesParts): Readonly<Record<string, FormAction>> {
  if (openId === null) return {};
  const run: FormAction['run'] = async (visit) => {
    const { account, session } = signedInOf(visit);
    if (account.openId !== null) throw invalidField('openid', 'The account is linked already: unlink it first.');
    return redirectToProvider({ openId, frame }, { errand: { kind: 'link', sessionId: session.id } });
  };
  return { 'link-openid': { access: 'signed in', needsFreshSignIn: true, run } };
}

const unlinking = (parts: SignInPagesParts) =>
  changing(parts, 'unlinked', async (visit, { id: accountId }) => {
    const changed = await unlinkOpenId(contextOf(parts, visit), { accountId });
    await parts.writeAudit(visit, { action: 'openid.unlink', object: accountId });
    return changed;
  });

const ending = ({ sessions, writeAudit: note }: SignInPagesParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    const { account } = signedInOf(visit);
    const id = values.text('session');
    // Only one of their own sessions: the id of somebody else's ends nothing.
    if ((await sessions.list(account.id)).some((each) => each.id === id)) {
      await sessions.end(id);
      await note(visit, { action: 'session.end', object: account.id, detail: { which: 'one' } });
    }
    return { kind: 'see', to: PATH, notice: 'ended' };
  },
});

const endingOthers = ({ sessions, writeAudit: note }: SignInPagesParts): FormAction => ({
  access: 'signed in',
  run: async (visit) => {
    const { account, session } = signedInOf(visit);
    await sessions.endAll(account.id, session.id);
    await note(visit, { action: 'session.end', object: account.id, detail: { which: 'all others' } });
    return { kind: 'see', to: PATH, notice: 'ended' };
  },
});

function toProfile(visit: Visit, account: AccountRecord, values?: FormValues): HtmlValue {
  const typed = values?.text('deed') ?? '';
  const name = typed === 'rename' ? (values?.text('name') ?? '') : account.name;
  const rename = visit.form(
    'rename',
    html`${field({ name: 'name', label: 'Your name', value: name, isRequired: true, charactersMax: 200, autocomplete: 'name' })}<button>Change the name</button>`,
  );
  const change = visit.form(
    'password',
    html`${newPasswordFields({ label: 'New password', isRequired: true })}<button>Change the password</button>`,
  );
  const title = account.passwordHash === null ? 'Set a password' : 'Change the password';
  return html`<dl><dt>Login</dt><dd>${account.login}</dd><dt>Name</dt><dd>${account.name}</dd></dl>
${disclosure('Change the name', rename, typed === 'rename')}
${disclosure(title, change, typed === 'password')}`;
}

function toPasskeys(visit: Visit, { passkeys }: AccountRecord): HtmlValue {
  const toRow = ({ id, name, createdAt }: Passkey) => [
    name,
    time(createdAt),
    visit.form(
      'remove-passkey',
      html`${hidden('passkey', id)}<button class="plain">Remove<span class="unseen"> ${name}</span></button>`,
      { className: 'inline' },
    ),
  ];
  const add = visit.form(
    'add-passkey',
    html`${field({ name: 'name', label: 'Its name', value: 'My device', isRequired: true, charactersMax: 200 })}
${passkeyButton({ kind: 'create', options: `${PATH}/passkey`, text: 'Make a passkey' })}`,
  );
  return html`<h2>Passkeys</h2>
${passkeys.length === 0 ? html`<p>None yet. With a passkey your phone or computer proves that it is you.</p>` : table('Passkeys', ['Name', 'Made', ''], passkeys.map(toRow))}
${disclosure('Add a passkey', html`${add}<noscript><p>Passkeys need JavaScript.</p></noscript>`)}`;
}

/** Shown also when there is no provider any more, so that a link to it can be taken away. */
function toOpenId(parts: SignInPagesParts, visit: Visit, { openId }: AccountRecord): HtmlValue {
  if (openId === null && parts.openId === null) return '';
  const link = openIdForm(parts, visit, { deed: 'link-openid', text: 'Link' });
  const unlink = html`<p>You also sign in by <code>${openId?.issuer ?? ''}</code>.</p>${visit.form('unlink-openid', html`<button>Unlink it</button>`)}`;
  return html`<h2>${parts.openId?.label ?? 'Sign-in elsewhere'}</h2>
${openId === null ? link : unlink}`;
}

function toSessions(visit: Visit, sessions: readonly SessionRecord[], own: SessionRecord): HtmlValue {
  const toRow = (session: SessionRecord) => [
    session.userAgent === '' ? 'unknown' : session.userAgent,
    session.address,
    time(session.createdAt),
    time(session.seenAt),
    session.id === own.id
      ? 'this one'
      : visit.form('end', html`${hidden('session', session.id)}<button class="plain">End this one</button>`, {
          className: 'inline',
        }),
  ];
  return html`<h2>Where you have signed in</h2>
${table('Sessions', ['Browser', 'Address', 'Since', 'Seen', ''], sessions.map(toRow))}
${sessions.length > 1 ? visit.form('end-others', html`<button>End all others</button>`) : ''}`;
}
