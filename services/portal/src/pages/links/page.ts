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
import { pageNotFound } from '../../frame/not-found.ts';
import type { FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
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
import {
  contextFor,
  createLinks,
  INVITATION_PATH,
  type Invitee,
  idFor,
  type Link,
  type LinkPagesParts,
} from './link.ts';

/** The pages of links, and what browsers ask of them to have a passkey made. */
export function createLinkPages(parts: LinkPagesParts): PortalPage[] {
  return createLinks(parts).flatMap((link) => [createLinkPage(parts, link), createCreationPage(parts, link)]);
}

function createLinkPage(parts: LinkPagesParts, link: Link): PortalPage {
  return {
    path: link.path,
    access: 'everybody',
    show: async (visit, fault) => {
      const code = fault?.values.text('code') ?? visit.query.get('code') ?? '';
      const found = await link.find(code);
      const joinable = await joinableOf(parts, visit, { link, code });
      if (found === null && joinable === null) throw invalidLink();
      const shown = { parts, visit, link, code, values: fault?.values };
      const content = html`${toJoin(shown, joinable !== null)}${found === null ? '' : toContent(shown, found)}`;
      return { kind: 'page', title: link.title, content, scripts: PASSKEY_SCRIPTS, ...formsTo(parts) };
    },
    actions: { accept: accepting(parts, link), ...(link.path === INVITATION_PATH ? { join: joining(parts) } : {}) },
  };
}

const accepting = (parts: LinkPagesParts, link: Link): FormAction => ({
  access: 'everybody',
  run: async (visit, values) => {
    const code = values.text('code');
    const found = await link.find(code);
    if (found === null) throw invalidLink();
    const { openId, frame } = parts;
    if (openId !== null && values.text('way') === OPEN_ID_METHOD) {
      const errand = { kind: 'accept', path: link.path, ...namesOf(found, values) } as const;
      return redirectToProvider({ openId, frame }, { errand, code });
    }
    const person = await personOf(parts, found, values);
    const account = await link.accept(contextFor(parts, visit, person.id), code, person);
    return { kind: 'see', to: '/', cookie: await beginSession(parts, visit, { account }) };
  },
});

/** Whoever has an account takes the invitation with it. Nobody has proved anything anew: the session is as fresh as before. */
const joining = (parts: LinkPagesParts): FormAction => ({
  access: 'signed in',
  run: async (visit, values) => {
    if (visit.account === null || visit.session === null) throw pageNotFound();
    const taken = { text: values.text('code'), accountId: visit.account.id };
    const account = await joinInvitation(contextOf(parts, visit), taken);
    const { signedInAt } = visit.session;
    return { kind: 'see', to: '/', cookie: await beginSession(parts, visit, { account, signedInAt }) };
  },
});

/** The invitation that somebody who has signed in may take with their account; null where it is none. */
async function joinableOf(
  { accounts }: LinkPagesParts,
  { account }: Visit,
  { link, code }: { readonly link: Link; readonly code: string },
): Promise<AccountRecord | null> {
  if (account === null || link.path !== INVITATION_PATH) return null;
  return findJoinable(await accounts.all(), { text: code, accountId: account.id }, Date.now());
}

/** The button that leads to the provider. */
const OPEN_ID_METHOD = 'openid';

/** All that could be wrong is found before the link is taken. @throws PublicError VALIDATION_ERROR */
async function personOf(
  { signIn, passwords }: LinkPagesParts,
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
    throw invalidField('response', 'The passkey was made for somebody else.');
  return { id: ownerId, login, name, passwordHash: null, passkey };
}

/** @throws PublicError VALIDATION_ERROR */
function namesOf(found: AccountRecord | 'new', values: FormValues): { login: string; name: string } {
  const login = found === 'new' || found.login === '' ? toLogin(values.text('login')) : found.login;
  return { login, name: toPersonName(values.text('name')) };
}

/** What the browser is to make for whoever holds a link. */
function createCreationPage({ signIn }: LinkPagesParts, link: Link): PortalPage {
  return {
    path: `${link.path}/passkey`,
    access: 'everybody',
    show: async (visit) => {
      const found = await link.find(visit.query.get('code') ?? '');
      if (found === null) throw invalidLink();
      const login = found === 'new' || found.login === '' ? toLogin(visit.query.get('login') ?? '') : found.login;
      const id = idFor(found);
      const name = toPersonName(visit.query.get('name') ?? login);
      return answerJson(visit, await signIn.passkeyCreation({ id, login, name, passkeys: [] }));
    },
  };
}

interface LinkForm {
  readonly parts: LinkPagesParts;
  readonly visit: Visit;
  readonly link: Link;
  readonly code: string;
  readonly values: FormValues | undefined;
}

/** An invitation is for people who have an account as well. */
function toJoin({ visit, link, code }: LinkForm, isJoinable: boolean): HtmlValue {
  if (link.path !== INVITATION_PATH) return '';
  const next = `${link.path}?${new URLSearchParams({ code })}`;
  if (visit.account === null)
    return html`<p>You have an account here already? <a href="/sign-in?${new URLSearchParams({ next }).toString()}">Sign in</a>, and take the invitation with it.</p>`;
  if (!isJoinable) return '';
  const form = visit.form('join', html`${hidden('code', code)}<button>Take it as ${visit.account.name}</button>`);
  return html`<p>You have signed in: what you are invited to is added to your account.</p>${form}
<h2>Or as somebody new</h2>`;
}

function toContent({ parts, visit, link, code, values }: LinkForm, found: AccountRecord | 'new'): HtmlValue {
  const known = found === 'new' ? null : found;
  const typed = (name: string, standing: string) => values?.text(name) ?? standing;
  const login =
    known !== null && known.login !== ''
      ? html`<p>You sign in as <strong>${known.login}</strong>.</p>`
      : field({
          name: 'login',
          label: 'Login',
          value: typed('login', ''),
          hint: 'What you type to sign in, such as your address of mail.',
          autocomplete: 'username',
          isRequired: true,
          charactersMax: 254,
        });
  return visit.form(
    'accept',
    html`${hidden('code', code)}
${login}
${field({ name: 'name', label: 'Your name', value: typed('name', known?.name ?? ''), autocomplete: 'name', isRequired: true, charactersMax: 200 })}
<h2>With a passkey</h2>
<p>The phone or computer proves that it is you. Nothing has to be remembered, and nothing can be stolen from here.</p>
${passkeyButton({ kind: 'create', options: `${link.path}/passkey`, text: 'Go on with a passkey' })}
<h2>Or with a password</h2>
${newPasswordFields({ label: 'Password', isRequired: false })}
<button>Go on with the password</button>
${toProvider(parts)}`,
  );
}

/** Stands behind the form of the password, since Enter in a field presses the first button of a form. */
function toProvider({ openId }: LinkPagesParts): HtmlValue {
  if (openId === null) return '';
  return html`<h2>Or with ${openId.label}</h2>
<button name="way" value="${OPEN_ID_METHOD}">Go on with ${openId.label}</button>`;
}
