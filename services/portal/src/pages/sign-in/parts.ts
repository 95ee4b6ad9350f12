import {
  type AccountContext,
  type AccountRecord,
  type NewSession,
  type OpenIdSignIn,
  PASSWORD_CHARACTERS_MIN,
  type Passwords,
  type Sessions,
  type SignIn,
} from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { field } from '../../frame/components.ts';
import type { BrowserCookie, PortalCookie, SessionCookie } from '../../frame/cookies.ts';
import type { Answer, FormValues, Visit } from '../../frame/page.ts';
import { PAGE_HEADERS } from '../../frame/page-route.ts';
import type { PortalParts } from '../../portal-parts.ts';
import type { WriteAudit } from '../../write-audit.ts';

/** What pages that let people in work with. */
export interface SignInPagesParts extends Pick<PortalParts, 'accounts'> {
  readonly sessions: Sessions;
  readonly signIn: SignIn;
  readonly passwords: Passwords;
  readonly frame: {
    readonly cookie: SessionCookie;
    readonly browserCookie: BrowserCookie;
    readonly providerCookie: PortalCookie;
  };
  readonly writeAudit: WriteAudit;
  /** Null: the portal was told of no provider. */
  readonly openId: OpenIdSignIn | null;
}

/** For changes of accounts, in the name of whoever asks. */
export function contextOf(
  { accounts, sessions }: Pick<SignInPagesParts, 'accounts' | 'sessions'>,
  visit: Visit,
): AccountContext {
  // No account has the id '', so whoever has not signed in changes nothing.
  return { store: accounts.changedBy(visit.author), sessions, actorId: visit.account?.id ?? '' };
}

/** Where somebody signs in from, and the session that the browser has until then. */
export function fromOf({ frame }: Pick<SignInPagesParts, 'frame'>, { userAgent, address, exchange }: Visit) {
  const { cookie } = exchange.request.headers;
  const browserOf = (accountId: string) => frame.browserCookie.read(cookie, accountId);
  return { userAgent, address, previousText: frame.cookie.read(cookie), browserOf };
}

/**
 * A session of its own for somebody, in the place of the one before.
 * @param of `account` as it stands now: a session of a record before would have ended; `signedInAt`: when they proved who they
 *   are, now without it
 * @returns value of `set-cookie`
 */
export async function beginSession(
  parts: Pick<SignInPagesParts, 'sessions' | 'frame'>,
  visit: Visit,
  { account, ...also }: { readonly account: AccountRecord } & Pick<NewSession, 'signedInAt'>,
): Promise<string> {
  const { previousText, browserOf: _, ...place } = fromOf(parts, visit);
  const previous = previousText === null ? null : await parts.sessions.find(previousText);
  if (previous !== null) await parts.sessions.end(previous.id);
  const of = { accountId: account.id, accountRevision: account.revision };
  return parts.frame.cookie.toSetCookie((await parts.sessions.create({ ...of, ...place, ...also })).text);
}

export interface PasskeyButton {
  readonly kind: 'get' | 'create';
  /** Page that says what the browser is to be asked. */
  readonly options: string;
  readonly text: string;
}

/** A button that fills `response` of its form and sends it; without JavaScript it is not there. */
export function passkeyButton({ kind, options, text }: PasskeyButton): Markup {
  return html`<div><input type="hidden" name="response" value=""><button type="button" data-passkey="${kind}" data-options="${options}" hidden>${text}</button>
<p role="alert" data-passkey-told></p></div>`;
}

/** The script of pages with such a button. */
export const PASSKEY_SCRIPTS = ['passkeys.js'];

/** What the browser sent of a passkey; null when it sent none. */
export function responseOf(values: FormValues): unknown {
  const text = values.text('response');
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** As it was typed: spaces are part of it. */
export function passwordOf(values: FormValues, name = 'password'): string {
  return values.all(name)[0] ?? '';
}

/** Answers a question of `passkeys.js`. */
export function answerJson({ exchange }: Visit, body: object): Answer {
  exchange.answerText(200, { type: 'application/json', text: JSON.stringify(body) }, PAGE_HEADERS);
  return { kind: 'answered' };
}

/** What a passkey is called that is made with an account; others get a name from their owner. */
export const PASSKEY_NAME = 'First passkey';

/** A new password, which is typed twice. @throws PublicError VALIDATION_ERROR */
export function newPasswordOf(values: FormValues): string {
  const password = passwordOf(values);
  if (password === passwordOf(values, 'repeated')) return password;
  throw invalidField('repeated', 'The two passwords differ.');
}

/** The two fields of a new password. */
export function newPasswordFields({ label, isRequired }: { label: string; isRequired: boolean }): Markup {
  const password = { type: 'password', autocomplete: 'new-password', isRequired, charactersMax: 512 } as const;
  const hint = `At least ${PASSWORD_CHARACTERS_MIN} characters.`;
  return html`${field({ ...password, name: 'password', label, hint })}
${field({ ...password, name: 'repeated', label: 'The same once more' })}`;
}
