/** Shared by pages that sign people in or change accounts. */
import {
  type AccountContext,
  type AccountRecord,
  type NewSession,
  PASSWORD_CHARACTERS_MIN,
} from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { field } from '../../frame/components.ts';
import type { Answer, FormValues, Visit } from '../../frame/page.ts';
import { PAGE_HEADERS } from '../../frame/page-route.ts';
import type { PagesParts } from '../index.ts';

/** For changes of accounts by the signed-in person. */
export function contextOf(
  { accounts, sessions }: Pick<PagesParts, 'accounts' | 'sessions'>,
  visit: Visit,
): AccountContext {
  // No account has the id ''.
  return { store: accounts.changedBy(visit.author), sessions, actorId: visit.account?.id ?? '' };
}

export function fromOf({ frame }: Pick<PagesParts, 'frame'>, { userAgent, address, exchange }: Visit) {
  const { cookie } = exchange.request.headers;
  const browserOf = (accountId: string) => frame.browserCookie.read(cookie, accountId);
  return { userAgent, address, previousText: frame.cookie.read(cookie), browserOf };
}

/**
 * Replaces the session of the browser. `account` must be the latest record, because sessions of an earlier one have
 * ended; `signedInAt` is now when absent.
 * @returns value of `set-cookie`
 */
export async function beginSession(
  parts: Pick<PagesParts, 'sessions' | 'frame'>,
  visit: Visit,
  { account, ...times }: { readonly account: AccountRecord } & Pick<NewSession, 'signedInAt'>,
): Promise<string> {
  const { previousText, browserOf: _, ...client } = fromOf(parts, visit);
  const previous = previousText === null ? null : await parts.sessions.find(previousText);
  if (previous !== null) await parts.sessions.end(previous.id);
  const session = { accountId: account.id, accountRevision: account.revision, ...client, ...times };
  return parts.frame.cookie.toSetCookie((await parts.sessions.create(session)).text);
}

/** Fills `response` of its form and sends it. Hidden without JavaScript. @param options path of the passkey options */
export function passkeyButton(kind: 'get' | 'create', options: string, text: string): Markup {
  return html`<div><input type="hidden" name="response" value=""><button type="button" data-passkey="${kind}" data-options="${options}" hidden>${text}</button>
<p role="alert" data-passkey-error></p></div>`;
}

export const PASSKEY_SCRIPTS = ['passkeys.js'];

/** The browser's passkey response; null without one. */
export function responseOf(values: FormValues): unknown {
  const text = values.text('response');
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** As typed: spaces are part of a password. */
export function passwordOf(values: FormValues, name = 'password'): string {
  return values.all(name)[0] ?? '';
}

export function answerJson({ exchange }: Visit, body: object): Answer {
  exchange.answerText(200, { type: 'application/json', text: JSON.stringify(body) }, PAGE_HEADERS);
  return { kind: 'answered' };
}

/** Name of a passkey that is created together with an account. */
export const PASSKEY_NAME = 'First passkey';

/** @throws PublicError VALIDATION_ERROR when the two fields differ */
export function newPasswordOf(values: FormValues): string {
  const password = passwordOf(values);
  if (password === passwordOf(values, 'repeated')) return password;
  throw invalidField('repeated', 'The two passwords differ.');
}

export function newPasswordFields({ label, isRequired }: { label: string; isRequired: boolean }): Markup {
  const password = { type: 'password', autocomplete: 'new-password', isRequired, charactersMax: 512 } as const;
  const hint = `At least ${PASSWORD_CHARACTERS_MIN} characters.`;
  return html`${field({ ...password, name: 'password', label, hint })}
${field({ ...password, name: 'repeated', label: 'Repeat the password' })}`;
}
