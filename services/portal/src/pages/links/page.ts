/** The pages of one-time links, and the passkey options for them. */
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
import type { PagesParts } from '../index.ts';
import { formsTo, redirectToProvider } from '../sign-in/open-id.ts';
import {
  answerJson,
  beginSession,
  contextOf,
  newPasswordFields,
  newPasswordOf,
  PASSKEY_NAME,
  PASSKEY_SCRIPTS,
  passkeyButton,
  responseOf,
} from '../sign-in/parts.ts';
import { contextFor, createLinks, INVITATION_PATH, type Invitee, idFor, type Link } from './link.ts';

export function createLinkPages(parts: PagesParts): PortalPage[] {
  return createLinks(parts).flatMap((link) => [createLinkPage(parts, link), createCreationPage(parts, link)]);
}

function createLinkPage(parts: PagesParts, link: Link): PortalPage {
  return {
    path: link.path,
    access: 'public',
    show: async (visit, fault) => {
      const code = fault?.values.text('code') ?? visit.query.get('code') ?? '';
      const found = await link.find(code);
      const isJoinable = await canJoin(parts, visit, link, code);
      if (found === null && !isJoinable) throw invalidLink();
      const form = { parts, visit, link, code, values: fault?.values };
      const content = html`${toJoin(form, isJoinable)}${found === null ? '' : toContent(form, found)}`;
      return { kind: 'page', title: link.title, content, scripts: PASSKEY_SCRIPTS, ...formsTo(parts) };
    },
    actions: {
      accept: acceptAction(parts, link),
      ...(link.path === INVITATION_PATH ? { join: joinAction(parts) } : {}),
    },
  };
}

const acceptAction = (parts: PagesParts, link: Link): FormAction => ({
  access: 'public',
  run: async (visit, values) => {
    const code = values.text('code');
    const found = await link.find(code);
    if (found === null) throw invalidLink();
    const { openId, frame } = parts;
    if (openId !== null && values.text('way') === OPEN_ID_METHOD) {
      const purpose = { kind: 'accept', path: link.path, ...namesOf(found, values) } as const;
      return redirectToProvider({ openId, frame }, { purpose, code });
    }
    const person = await inviteeOf(parts, found, values);
    const account = await link.accept(contextFor(parts, visit, person.id), code, person);
    return { kind: 'redirect', to: '/', cookie: await beginSession(parts, visit, { account }) };
  },
});

/** Adds an invitation to the account of a signed-in person. The session stays as fresh as before. */
const joinAction = (parts: PagesParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    const { account, session } = signedInOf(visit);
    const joined = await joinInvitation(contextOf(parts, visit), { text: values.text('code'), accountId: account.id });
    const cookie = await beginSession(parts, visit, { account: joined, signedInAt: session.signedInAt });
    return { kind: 'redirect', to: '/', cookie };
  },
});

async function canJoin({ accounts }: PagesParts, { account }: Visit, link: Link, code: string): Promise<boolean> {
  if (account === null || link.path !== INVITATION_PATH) return false;
  return findJoinable(await accounts.all(), { text: code, accountId: account.id }, Date.now()) !== null;
}

const OPEN_ID_METHOD = 'openid';

async function inviteeOf(
  { signIn, passwords }: PagesParts,
  found: AccountRecord | 'new',
  values: FormValues,
): Promise<Invitee> {
  const { login, name } = namesOf(found, values);
  const response = responseOf(values);
  if (response === null) {
    const password = newPasswordOf(values);
    const passwordHash = await passwords.hash({ password, login });
    return { id: idFor(found), login, name, passwordHash, passkey: null };
  }
  const { ownerId, passkey } = await signIn.readPasskey({ response, name: PASSKEY_NAME });
  if (found !== 'new' && found.id !== ownerId)
    throw invalidField('response', 'This passkey was created for another account.');
  return { id: ownerId, login, name, passwordHash: null, passkey };
}

const knownLogin = (found: AccountRecord | 'new') => (found === 'new' ? '' : found.login);

function namesOf(found: AccountRecord | 'new', values: FormValues): { login: string; name: string } {
  return { login: knownLogin(found) || toLogin(values.text('login')), name: toPersonName(values.text('name')) };
}

function createCreationPage({ signIn }: PagesParts, link: Link): PortalPage {
  return {
    path: `${link.path}/passkey`,
    access: 'public',
    show: async (visit) => {
      const found = await link.find(visit.query.get('code') ?? '');
      if (found === null) throw invalidLink();
      const login = knownLogin(found) || toLogin(visit.query.get('login') ?? '');
      const name = toPersonName(visit.query.get('name') ?? login);
      return answerJson(visit, await signIn.passkeyCreation({ id: idFor(found), login, name, passkeys: [] }));
    },
  };
}

interface LinkForm {
  readonly parts: PagesParts;
  readonly visit: Visit;
  readonly link: Link;
  readonly code: string;
  readonly values: FormValues | undefined;
}

/** People who have an account can accept an invitation with it. */
function toJoin({ visit, link, code }: LinkForm, isJoinable: boolean): HtmlValue {
  if (link.path !== INVITATION_PATH) return '';
  const next = `${link.path}?${new URLSearchParams({ code })}`;
  if (visit.account === null)
    return html`<p>Already have an account? <a href="/sign-in?${new URLSearchParams({ next }).toString()}">Sign in</a> to accept the invitation with it.</p>`;
  if (!isJoinable) return '';
  const form = visit.form('join', html`${hidden('code', code)}<button>Accept as ${visit.account.name}</button>`);
  return html`<p>You are signed in. Accepting adds the role to your account.</p>${form}
<h2>Or create a new account</h2>`;
}

function toContent({ parts, visit, link, code, values }: LinkForm, found: AccountRecord | 'new'): HtmlValue {
  const known = knownLogin(found);
  const login =
    known !== ''
      ? html`<p>You sign in as <strong>${known}</strong>.</p>`
      : field({
          name: 'login',
          label: 'Login',
          value: values?.text('login') ?? '',
          hint: 'What you type to sign in, such as your e-mail address.',
          autocomplete: 'username',
          isRequired: true,
          charactersMax: 254,
        });
  const name = values?.text('name') ?? (found === 'new' ? '' : found.name);
  // The password comes before the provider, because Enter in a field presses the first button of a form.
  const provider =
    parts.openId === null
      ? ''
      : html`<h2>Or with ${parts.openId.label}</h2>
<button name="way" value="${OPEN_ID_METHOD}">Continue with ${parts.openId.label}</button>`;
  return visit.form(
    'accept',
    html`${hidden('code', code)}
${login}
${field({ name: 'name', label: 'Your name', value: name, autocomplete: 'name', isRequired: true, charactersMax: 200 })}
<h2>With a passkey</h2>
<p>Your phone or computer confirms that it is you. There is nothing to remember, and nothing to steal from this server.</p>
${passkeyButton('create', `${link.path}/passkey`, 'Continue with a passkey')}
<h2>Or with a password</h2>
${newPasswordFields({ label: 'Password', isRequired: false })}
<button>Continue with the password</button>
${provider}`,
  );
}
