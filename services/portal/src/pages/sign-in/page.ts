import { type SignedIn, toReturnPath } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import { field, hidden } from '../../frame/components.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { formsTo, openIdForm, redirectToProvider } from './open-id.ts';
import {
  answerJson,
  fromOf,
  PASSKEY_SCRIPTS,
  passkeyButton,
  passwordOf,
  responseOf,
  type SignInPagesParts,
} from './parts.ts';

/** How somebody proves who they are. */
interface SignInMethod {
  readonly name: 'password' | 'passkey';
  prove(): Promise<SignedIn>;
}

/** Where people sign in, also once more before they make a secret. */
export function createSignInPage(parts: SignInPagesParts): PortalPage {
  const { signIn } = parts;
  const letIn = createCompleteSignIn(parts);
  return {
    path: '/sign-in',
    access: 'everybody',
    notices: { 'signed-out': 'You have signed out.' },
    show: (visit, fault) => {
      const next = toReturnPath(fault?.values.text('next') ?? visit.query.get('next'));
      if (visit.account !== null && fault === undefined && visit.query.get('again') === null)
        return { kind: 'see', to: next };
      return {
        kind: 'page',
        title: 'Sign in',
        content: toContent({ parts, visit, next }, fault?.values),
        scripts: PASSKEY_SCRIPTS,
        ...formsTo(parts),
      };
    },
    actions: {
      password: {
        access: 'everybody',
        run: async (visit, values) => {
          const wanted = { login: values.text('login'), password: passwordOf(values) };
          const prove = () => signIn.byPassword({ ...fromOf(parts, visit), ...wanted });
          return letIn(visit, values, { name: 'password', prove });
        },
      },
      passkey: {
        access: 'everybody',
        run: async (visit, values) => {
          const prove = () => signIn.byPasskey({ ...fromOf(parts, visit), response: responseOf(values) });
          return letIn(visit, values, { name: 'passkey', prove });
        },
      },
      ...openIdAction(parts),
    },
  };
}

/** To the provider, where there is one. Whoever has signed in and does so again is to prove it there too. */
function openIdAction(parts: SignInPagesParts): Readonly<Record<string, FormAction>> {
  const { openId, frame } = parts;
  if (openId === null) return {};
  const run: FormAction['run'] = async (visit, values) => {
    const errand = { kind: 'sign in', next: toReturnPath(values.text('next')) } as const;
    return redirectToProvider({ openId, frame }, { errand, needsFreshSignIn: visit.session !== null });
  };
  return { openid: { access: 'everybody', run } };
}

/** Builds what lets somebody in who has proved who they are, and notes it, and what was refused, in the audit. */
function createCompleteSignIn({ frame, writeAudit: note }: SignInPagesParts) {
  const proceed = ({ text, account }: SignedIn, values: FormValues): Answer => ({
    kind: 'see',
    to: toReturnPath(values.text('next')),
    cookie: [frame.cookie.toSetCookie(text), frame.browserCookie.toSetCookie(account.id)],
  });
  return async (visit: Visit, values: FormValues, way: SignInMethod): Promise<Answer> => {
    try {
      const signedIn = await way.prove();
      const { account } = signedIn;
      await note(visit, { action: 'session.create', actor: account.id, object: account.id, detail: { way: way.name } });
      return proceed(signedIn, values);
    } catch (fault) {
      // The login is left out: it may be a password that was typed into the wrong field.
      const isRefused = fault instanceof PublicError && fault.status < 500;
      if (isRefused) await note(visit, { action: 'session.refuse', detail: { way: way.name, code: fault.code } });
      throw fault;
    }
  };
}

interface Shown {
  readonly parts: SignInPagesParts;
  readonly visit: Visit;
  readonly next: string;
}

function toContent({ parts, visit, next }: Shown, values?: FormValues): HtmlValue {
  const named = hidden('next', next);
  const login = values?.text('login') ?? visit.account?.login ?? '';
  const passkey = visit.form(
    'passkey',
    html`${named}${passkeyButton({ kind: 'get', options: '/sign-in/passkey', text: 'Sign in with a passkey' })}`,
  );
  const password = visit.form(
    'password',
    html`${named}${field({ name: 'login', label: 'Login', value: login, autocomplete: 'username', isRequired: true })}
${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', isRequired: true, charactersMax: 512 })}
<button>Sign in</button>`,
  );
  return html`${visit.query.get('again') === null ? '' : html`<p>What comes next asks for a sign-in of the last ten minutes. Sign in once more, and send the form again.</p>`}
${passkey}${password}${openIdForm(parts, visit, { deed: 'openid', text: 'Sign in with', fields: named })}
<p class="quiet">You have lost password and passkeys? Whoever runs this instance can let you in again.</p>`;
}

/** What the browser is to ask its devices for. */
export function createPasskeyRequestPage({ signIn }: Pick<SignInPagesParts, 'signIn'>): PortalPage {
  return {
    path: '/sign-in/passkey',
    access: 'everybody',
    show: async (visit) => answerJson(visit, await signIn.passkeyRequest(visit)),
  };
}

/** Where the button of every page leads. */
export function createSignOutPage({ sessions, frame, writeAudit: note }: SignInPagesParts): PortalPage {
  return {
    path: '/sign-out',
    access: 'signed in',
    show: (visit) => ({
      kind: 'page',
      title: 'Sign out',
      content: visit.form('sign-out', html`<button>Sign out</button>`),
    }),
    actions: {
      'sign-out': {
        access: 'signed in',
        run: async (visit) => {
          if (visit.session !== null) await sessions.end(visit.session.id);
          await note(visit, { action: 'session.end', object: visit.account?.id ?? '' });
          return { kind: 'see', to: '/sign-in', notice: 'signed-out', cookie: frame.cookie.toClearCookie() };
        },
      },
    },
  };
}
