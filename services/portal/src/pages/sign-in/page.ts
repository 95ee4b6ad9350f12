import { toReturnPath } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import type { Answer, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { field } from '../../frame/parts.ts';
import {
  answerJson,
  fromOf,
  PASSKEY_SCRIPTS,
  passkeyButton,
  passwordOf,
  responseOf,
  type SignInPagesParts,
} from './parts.ts';

/** Where people sign in, also once more before they make a secret. */
export function createSignInPage(parts: SignInPagesParts): PortalPage {
  const { signIn, frame } = parts;
  const goOn = (text: string, values: FormValues): Answer => ({
    ...{ kind: 'see', to: toReturnPath(values.text('next')) },
    cookie: frame.cookie.give(text),
  });
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
        content: toContent(visit, next, fault?.values),
        scripts: PASSKEY_SCRIPTS,
      };
    },
    deeds: {
      password: {
        access: 'everybody',
        run: async (visit, values) => {
          const wanted = { login: values.text('login'), password: passwordOf(values) };
          const { text } = await signIn.byPassword({ ...fromOf(parts, visit), ...wanted });
          return goOn(text, values);
        },
      },
      passkey: {
        access: 'everybody',
        run: async (visit, values) => {
          const { text } = await signIn.byPasskey({ ...fromOf(parts, visit), response: responseOf(values) });
          return goOn(text, values);
        },
      },
    },
  };
}

function toContent(visit: Visit, next: string, values?: FormValues): HtmlValue {
  const hidden = html`<input type="hidden" name="next" value="${next}">`;
  const login = values?.text('login') ?? visit.account?.login ?? '';
  const passkey = visit.form(
    'passkey',
    html`${hidden}${passkeyButton({ kind: 'get', options: '/sign-in/passkey', text: 'Sign in with a passkey' })}`,
  );
  const password = visit.form(
    'password',
    html`${hidden}${field({ name: 'login', label: 'Login', value: login, autocomplete: 'username', isRequired: true })}
${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', isRequired: true, charactersMax: 512 })}
<button>Sign in</button>`,
  );
  return html`${visit.query.get('again') === null ? '' : html`<p>What comes next asks for a sign-in of the last ten minutes. Sign in once more, and send the form again.</p>`}
${passkey}${password}
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
export function createSignOutPage({ sessions, frame }: SignInPagesParts): PortalPage {
  return {
    path: '/sign-out',
    access: 'signed in',
    show: (visit) => ({
      kind: 'page',
      title: 'Sign out',
      content: visit.form('sign-out', html`<button>Sign out</button>`),
    }),
    deeds: {
      'sign-out': {
        access: 'signed in',
        run: async ({ session }) => {
          if (session !== null) await sessions.end(session.id);
          return { kind: 'see', to: '/sign-in', notice: 'signed-out', cookie: frame.cookie.take() };
        },
      },
    },
  };
}
