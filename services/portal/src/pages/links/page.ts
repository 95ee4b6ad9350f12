import { randomUUID } from 'node:crypto';
import {
  type AccountContext,
  type AccountRecord,
  acceptInvitation,
  createFirstAdministrator,
  findInvited,
  isFirstLink,
  type NewPerson,
  type OneTimeTexts,
  takeFirstLink,
  toLogin,
  toPersonName,
} from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import type { FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { field } from '../../frame/parts.ts';
import {
  answerJson,
  beginSession,
  PASSKEY_NAME,
  PASSKEY_SCRIPTS,
  passkeyButton,
  passwordOf,
  responseOf,
  type SignInPagesParts,
} from '../sign-in/parts.ts';

export interface LinkPagesParts extends SignInPagesParts {
  readonly oneTime: OneTimeTexts;
}

/** Whoever comes in, with the id of their account: they are who makes or changes it. */
interface Incomer extends NewPerson {
  readonly id: string;
}

/** A link that lets somebody in, once. Looking at it takes nothing; what takes it is the form. */
interface Link {
  readonly path: string;
  readonly title: string;
  /** The account that waits; 'new' where there is to be one, null when the link is not good. */
  find(code: string): Promise<AccountRecord | 'new' | null>;
  accept(context: AccountContext, code: string, person: Incomer): Promise<AccountRecord>;
}

/** The pages of links, and what browsers ask of them to have a passkey made. */
export function createLinkPages(parts: LinkPagesParts): PortalPage[] {
  const links = [firstOf(parts), ...['/invitation', '/reset'].map((path) => invitationOf(parts, path))];
  return links.flatMap((link) => [createLinkPage(parts, link), createCreationPage(parts, link)]);
}

function firstOf({ oneTime }: LinkPagesParts): Link {
  const place = { oneTimeTexts: oneTime };
  return {
    ...{ path: '/first-sign-in', title: 'Become the first administrator' },
    find: async (code) => ((await isFirstLink(place, code)) ? 'new' : null),
    accept: async (context, code, person) => {
      if (!(await takeFirstLink(place, code))) throw notGood();
      return createFirstAdministrator(context, person);
    },
  };
}

function invitationOf({ accounts }: LinkPagesParts, path: string): Link {
  return {
    ...{ path, title: path === '/reset' ? 'Get back in' : 'Accept the invitation' },
    find: async (code) => findInvited(await accounts.all(), code, Date.now()),
    accept: (context, text, person) => acceptInvitation(context, { text, person }),
  };
}

const notGood = () =>
  new PublicError('RESOURCE_NOT_FOUND', { message: 'This link was used, or its time is over: ask for another one.' });

function createLinkPage(parts: LinkPagesParts, link: Link): PortalPage {
  return {
    path: link.path,
    access: 'everybody',
    show: async (visit, fault) => {
      const code = fault?.values.text('code') ?? visit.query.get('code') ?? '';
      const found = await link.find(code);
      if (found === null) throw notGood();
      const content = toContent({ visit, link, code, found, values: fault?.values });
      return { kind: 'page', title: link.title, content, scripts: PASSKEY_SCRIPTS };
    },
    deeds: {
      accept: {
        access: 'everybody',
        run: async (visit, values) => {
          const found = await link.find(values.text('code'));
          if (found === null) throw notGood();
          const person = await personOf(parts, found, values);
          // The link itself is what lets them in: nobody needs to have signed in.
          const store = parts.accounts.changedBy({ ...visit.author, changedBy: person.id });
          const context = { store, sessions: parts.sessions, actorId: null };
          const account = await link.accept(context, values.text('code'), person);
          return { kind: 'see', to: '/', cookie: await beginSession(parts, visit, account.id) };
        },
      },
    },
  };
}

/** All that could be wrong is found before the link is taken. @throws PublicError VALIDATION_ERROR */
async function personOf(
  { signIn, passwords }: LinkPagesParts,
  found: AccountRecord | 'new',
  values: FormValues,
): Promise<Incomer> {
  const login = found === 'new' || found.login === '' ? toLogin(values.text('login')) : found.login;
  const name = toPersonName(values.text('name'));
  const response = responseOf(values);
  if (response === null) {
    const password = passwordOf(values);
    if (password !== passwordOf(values, 'repeated')) throw invalidField('repeated', 'The two passwords differ.');
    const id = found === 'new' ? randomUUID() : found.id;
    return { id, login, name, passwordHash: await passwords.hash({ password, login }), passkey: null };
  }
  const { ownerId, passkey } = await signIn.readPasskey({ response, name: PASSKEY_NAME });
  if (found !== 'new' && found.id !== ownerId)
    throw invalidField('response', 'The passkey was made for somebody else.');
  return { id: ownerId, login, name, passwordHash: null, passkey };
}

/** What the browser is to make for whoever holds a link. */
function createCreationPage({ signIn }: LinkPagesParts, link: Link): PortalPage {
  return {
    path: `${link.path}/passkey`,
    access: 'everybody',
    show: async (visit) => {
      const found = await link.find(visit.query.get('code') ?? '');
      if (found === null) throw notGood();
      const login = found === 'new' || found.login === '' ? toLogin(visit.query.get('login') ?? '') : found.login;
      const id = found === 'new' ? randomUUID() : found.id;
      const name = toPersonName(visit.query.get('name') ?? login);
      return answerJson(visit, await signIn.passkeyCreation({ id, login, name, passkeys: [] }));
    },
  };
}

interface LinkForm {
  readonly visit: Visit;
  readonly link: Link;
  readonly code: string;
  readonly found: AccountRecord | 'new';
  readonly values: FormValues | undefined;
}

function toContent({ visit, link, code, found, values }: LinkForm): HtmlValue {
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
  const password = { type: 'password', autocomplete: 'new-password', charactersMax: 512 } as const;
  return visit.form(
    'accept',
    html`<input type="hidden" name="code" value="${code}">
${login}
${field({ name: 'name', label: 'Your name', value: typed('name', known?.name ?? ''), autocomplete: 'name', isRequired: true, charactersMax: 200 })}
<h2>With a passkey</h2>
<p>The phone or computer proves that it is you. Nothing has to be remembered, and nothing can be stolen from here.</p>
${passkeyButton({ kind: 'create', options: `${link.path}/passkey`, text: 'Go on with a passkey' })}
<h2>Or with a password</h2>
${field({ ...password, name: 'password', label: 'Password', hint: 'At least 12 characters.' })}
${field({ ...password, name: 'repeated', label: 'The same once more' })}
<button>Go on with the password</button>`,
  );
}
