/** The pages for signing in and out. Sensitive actions require users to sign in again. */
import { type SignedIn, toReturnPath } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { PublicError } from '@playline/errors';
import { field, hidden } from '../../frame/components.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';
import { formOrigins, openIdForm, redirectToProvider } from './open-id.ts';
import { PASSKEY_SCRIPTS, passkeyButton, readPasskeyResponse, readPassword, respondJson, toClient } from './parts.ts';

export function createSignInPage(parts: PageParts): PortalPage {
  const { signIn } = parts;
  return {
    path: '/sign-in',
    access: 'public',
    notices: { 'signed-out': 'You have signed out.' },
    show: (visit, failure) => {
      const next = toReturnPath(failure?.values.text('next') ?? visit.query.get('next'));
      if (visit.account !== null && failure === undefined && visit.query.get('again') === null)
        return { kind: 'redirect', to: next };
      const content = toContent(parts, visit, next, failure?.values);
      return { kind: 'page', title: 'Sign in', content, scripts: PASSKEY_SCRIPTS, ...formOrigins(parts) };
    },
    actions: {
      password: methodAction(parts, 'password', (visit, values) => {
        const typed = { login: values.text('login'), password: readPassword(values) };
        return signIn.byPassword({ ...toClient(parts, visit), ...typed });
      }),
      passkey: methodAction(parts, 'passkey', (visit, values) =>
        signIn.byPasskey({ ...toClient(parts, visit), response: readPasskeyResponse(values) }),
      ),
      ...openIdAction(parts),
    },
  };
}

/** Redirects to the provider. Users who are already signed in must authenticate with the provider again. */
function openIdAction({ openId, frame }: PageParts): Readonly<Record<string, FormAction>> {
  if (openId === null) return {};
  const run: FormAction['run'] = async (visit, values) => {
    const purpose = { kind: 'sign in', next: toReturnPath(values.text('next')) } as const;
    return redirectToProvider({ openId, frame }, { purpose, needsFreshSignIn: visit.session !== null });
  };
  return { openid: { access: 'public', run } };
}

const methodAction = (
  { frame, writeAudit }: PageParts,
  method: 'password' | 'passkey',
  authenticate: (visit: Visit, values: FormValues) => Promise<SignedIn>,
): FormAction => ({
  access: 'public',
  run: async (visit, values): Promise<PageResponse> => {
    try {
      const { text: sessionToken, account } = await authenticate(visit, values);
      const { id } = account;
      await writeAudit(visit, { action: 'session.create', actor: id, object: id, detail: { method } });
      const cookie = [frame.cookie.toSetCookie(sessionToken), frame.browserCookie.toSetCookie(id)];
      return { kind: 'redirect', to: toReturnPath(values.text('next')), cookie };
    } catch (error) {
      // The login is not recorded, because users sometimes type their password into the login field.
      const isRefused = error instanceof PublicError && error.status < 500;
      if (isRefused) await writeAudit(visit, { action: 'session.refuse', detail: { method, code: error.code } });
      throw error;
    }
  },
});

function toContent(parts: PageParts, visit: Visit, next: string, values?: FormValues): HtmlValue {
  const nextField = hidden('next', next);
  const login = values?.text('login') ?? visit.account?.login ?? '';
  const passkey = visit.form(
    'passkey',
    html`${nextField}${passkeyButton('get', '/sign-in/passkey', 'Sign in with a passkey')}`,
  );
  const password = visit.form(
    'password',
    html`${nextField}${field({ name: 'login', label: 'Login', value: login, autocomplete: 'username', isRequired: true })}
${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', isRequired: true, maxLength: 512 })}
<button>Sign in</button>`,
  );
  const again = visit.query.get('again');
  const entries =
    again === 'empty' ? 'Your entries are too long to be kept: enter them again.' : 'Your entries are kept.';
  const freshSignInNote =
    again === null
      ? ''
      : html`<p>This action requires a sign-in within the last ten minutes. Sign in again to continue. ${entries}</p>`;
  return html`${freshSignInNote}
${password}${passkey}${openIdForm(parts, visit, { action: 'openid', text: 'Sign in with', fields: nextField })}
<p class="hint">Lost your password and passkeys? The operator of this instance can restore your access.</p>`;
}

export function createPasskeyRequestPage({ signIn }: PageParts): PortalPage {
  return {
    path: '/sign-in/passkey',
    access: 'public',
    show: async (visit) => respondJson(visit, await signIn.passkeyRequest(visit)),
  };
}

export function createSignOutPage({ sessions, frame, writeAudit }: PageParts): PortalPage {
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
          await writeAudit(visit, { action: 'session.end', object: visit.account?.id ?? '' });
          return { kind: 'redirect', to: '/sign-in', notice: 'signed-out', cookie: frame.cookie.toClearCookie() };
        },
      },
    },
  };
}
