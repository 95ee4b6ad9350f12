/** The pages that one-time links open, and the passkey options that these pages request. */
import {
  type AccountRecord,
  findJoinable,
  invalidLink,
  joinInvitation,
  toLogin,
  toPersonName,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { field, hidden } from '../../frame/components.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { signedInOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { formOrigins, redirectToProvider } from '../sign-in/open-id.ts';
import {
  beginSession,
  newPasswordFields,
  PASSKEY_NAME,
  PASSKEY_SCRIPTS,
  passkeyButton,
  readNewPassword,
  readPasskeyResponse,
  respondJson,
  toContext,
} from '../sign-in/parts.ts';
import { createLinks, INVITATION_PATH, type Invitee, type Link, toAccountId, toInviteeContext } from './link.ts';

export function createLinkPages(parts: PageParts): PortalPage[] {
  return createLinks(parts).flatMap((link) => [createLinkPage(parts, link), createPasskeyCreationPage(parts, link)]);
}

function createLinkPage(parts: PageParts, link: Link): PortalPage {
  return {
    path: link.path,
    access: 'public',
    show: async (visit, failure) => {
      const code = failure?.values.text('code') ?? visit.query.get('code') ?? '';
      const found = await link.find(code);
      const isJoinable = await canJoin(parts, visit, link, code);
      if (found === null && !isJoinable) throw invalidLink();
      const form = { parts, visit, link, code, values: failure?.values };
      const content = html`${toJoinForm(form, isJoinable)}${found === null ? '' : toContent(form, found)}`;
      return { kind: 'page', title: link.title, content, scripts: PASSKEY_SCRIPTS, ...formOrigins(parts) };
    },
    actions: {
      accept: acceptAction(parts, link),
      ...(link.path === INVITATION_PATH ? { join: joinAction(parts) } : {}),
    },
  };
}

const acceptAction = (parts: PageParts, link: Link): FormAction => ({
  access: 'public',
  run: async (visit, values) => {
    const code = values.text('code');
    const found = await link.find(code);
    if (found === null) throw invalidLink();
    const { openId, frame } = parts;
    if (openId !== null && values.text('sign-in-method') === OPEN_ID_METHOD) {
      const purpose = { kind: 'accept', path: link.path, ...readNames(found, values) } as const;
      return redirectToProvider({ openId, frame }, { purpose, code });
    }
    const invitee = await readInvitee(parts, found, values);
    const account = await link.accept(toInviteeContext(parts, visit, invitee.id), code, invitee);
    return { kind: 'redirect', to: '/', cookie: await beginSession(parts, visit, { account }) };
  },
});

/** Adds the role in the invitation to the account of the signed-in user. Does not count as a fresh sign-in. */
const joinAction = (parts: PageParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    const { account, session } = signedInOf(visit);
    const joined = await joinInvitation(toContext(parts, visit), { text: values.text('code'), accountId: account.id });
    const cookie = await beginSession(parts, visit, { account: joined, signedInAt: session.signedInAt });
    return { kind: 'redirect', to: '/', cookie };
  },
});

async function canJoin({ accounts }: PageParts, { account }: Visit, link: Link, code: string): Promise<boolean> {
  if (account === null || link.path !== INVITATION_PATH) return false;
  return findJoinable(await accounts.all(), { text: code, accountId: account.id }, Date.now()) !== null;
}

const OPEN_ID_METHOD = 'openid';

async function readInvitee(
  { signIn, passwords }: PageParts,
  found: AccountRecord | 'new',
  values: FormValues,
): Promise<Invitee> {
  const { login, name } = readNames(found, values);
  const response = readPasskeyResponse(values);
  if (response === null) {
    const password = readNewPassword(values);
    const passwordHash = await passwords.hash({ password, login });
    return { id: toAccountId(found), login, name, passwordHash, passkey: null };
  }
  const { ownerId, passkey } = await signIn.readPasskey({ response, name: PASSKEY_NAME });
  if (found !== 'new' && found.id !== ownerId)
    throw invalidField('response', 'This passkey was created for another account.');
  return { id: ownerId, login, name, passwordHash: null, passkey };
}

const findLogin = (found: AccountRecord | 'new') => (found === 'new' ? '' : found.login);

function readNames(found: AccountRecord | 'new', values: FormValues): { login: string; name: string } {
  return { login: findLogin(found) || toLogin(values.text('login')), name: toPersonName(values.text('name')) };
}

function createPasskeyCreationPage({ signIn }: PageParts, link: Link): PortalPage {
  return {
    path: `${link.path}/passkey`,
    access: 'public',
    show: async (visit) => {
      const found = await link.find(visit.query.get('code') ?? '');
      if (found === null) throw invalidLink();
      const login = findLogin(found) || toLogin(visit.query.get('login') ?? '');
      const name = toPersonName(visit.query.get('name') ?? login);
      return respondJson(visit, await signIn.passkeyCreation({ id: toAccountId(found), login, name, passkeys: [] }));
    },
  };
}

interface LinkForm {
  readonly parts: PageParts;
  readonly visit: Visit;
  readonly link: Link;
  readonly code: string;
  readonly values: FormValues | undefined;
}

function toJoinForm({ visit, link, code }: LinkForm, isJoinable: boolean): HtmlValue {
  if (link.path !== INVITATION_PATH) return '';
  const next = `${link.path}?${new URLSearchParams({ code })}`;
  if (visit.account === null)
    return html`<p>Already have an account? <a href="/sign-in?${new URLSearchParams({ next }).toString()}">Sign in</a> to accept the invitation with your account.</p>`;
  if (!isJoinable) return '';
  const form = visit.form('join', html`${hidden('code', code)}<button>Accept as ${visit.account.name}</button>`);
  return html`<p>You are signed in. Accepting the invitation adds the role to your account.</p>${form}
<h2>Or create a new account</h2>`;
}

function toContent({ parts, visit, link, code, values }: LinkForm, found: AccountRecord | 'new'): HtmlValue {
  const existingLogin = findLogin(found);
  const login =
    existingLogin !== ''
      ? html`<p>Your login is <strong>${existingLogin}</strong>.</p>`
      : field({
          name: 'login',
          label: 'Login',
          value: values?.text('login') ?? '',
          hint: 'You use your login to sign in. It can be your email address.',
          autocomplete: 'username',
          isRequired: true,
          maxLength: 254,
        });
  const name = values?.text('name') ?? (found === 'new' ? '' : found.name);
  // Pressing Enter in a field activates the first submit button, so the password button must come first.
  const provider =
    parts.openId === null
      ? ''
      : html`<h2>Or with ${parts.openId.label}</h2>
<button name="sign-in-method" value="${OPEN_ID_METHOD}">Continue with ${parts.openId.label}</button>`;
  return visit.form(
    'accept',
    html`${hidden('code', code)}
${login}
${field({ name: 'name', label: 'Your name', value: name, autocomplete: 'name', isRequired: true, maxLength: 200 })}
<h2>With a passkey</h2>
<p>Your phone or computer confirms your identity. There is no password to remember, and this server stores no secret.</p>
${passkeyButton('create', `${link.path}/passkey`, 'Continue with a passkey')}
<h2>Or with a password</h2>
${newPasswordFields({ label: 'Password', isRequired: false })}
<button>Continue with a password</button>
${provider}`,
  );
}
