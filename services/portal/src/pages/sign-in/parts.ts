/** Functions for pages that sign users in or change accounts. */
import {
  type AccountContext,
  type AccountRecord,
  type NewSession,
  PASSWORD_CHARACTERS_MIN,
} from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { field } from '../../frame/components.ts';
import type { FormValues, PageResponse, Visit } from '../../frame/page.ts';
import { PAGE_HEADERS } from '../../frame/page-route.ts';
import type { PageParts } from '../index.ts';

/** Returns the context for account changes by the signed-in user. */
export function toContext(
  { accounts, sessions }: Pick<PageParts, 'accounts' | 'sessions'>,
  visit: Visit,
): AccountContext {
  // No account has the id ''.
  return { store: accounts.storeFor(visit.author), sessions, actorId: visit.account?.id ?? '' };
}

export function toClient({ frame }: Pick<PageParts, 'frame'>, { userAgent, address, exchange }: Visit) {
  const { cookie } = exchange.request.headers;
  const browserOf = (accountId: string) => frame.browserCookie.read(cookie, accountId);
  return { userAgent, address, previousText: frame.cookie.read(cookie), browserOf };
}

/**
 * Replaces the session of the browser. `account` must be the latest revision, because sessions of earlier revisions are
 * not valid. `signedInAt` defaults to the current time.
 * @returns the value of the `set-cookie` header
 */
export async function beginSession(
  parts: Pick<PageParts, 'sessions' | 'frame'>,
  visit: Visit,
  { account, ...times }: { readonly account: AccountRecord } & Pick<NewSession, 'signedInAt'>,
): Promise<string> {
  const { previousText, browserOf: _, ...client } = toClient(parts, visit);
  const previous = previousText === null ? null : await parts.sessions.find(previousText);
  if (previous !== null) await parts.sessions.end(previous.id);
  const session = { accountId: account.id, accountRevision: account.revision, ...client, ...times };
  return parts.frame.cookie.toSetCookie((await parts.sessions.create(session)).text);
}

/** Submits the form with a passkey in `response`. Hidden without JavaScript. @param options path of WebAuthn options */
export function passkeyButton(kind: 'get' | 'create', options: string, text: string): Markup {
  return html`<div><input type="hidden" name="response" value=""><button type="button" class="outline" data-passkey="${kind}" data-options="${options}" hidden>${text}</button>
<p role="alert" data-passkey-error></p></div>`;
}

export const PASSKEY_SCRIPTS = ['passkeys.js'];

/** Returns the passkey response from the browser; null if the form does not contain a response. */
export function readPasskeyResponse(values: FormValues): unknown {
  const text = values.text('response');
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Does not trim the value, because spaces are part of a password. */
export function readPassword(values: FormValues, name = 'password'): string {
  return values.all(name)[0] ?? '';
}

export function respondJson({ exchange }: Visit, body: object): PageResponse {
  exchange.answerText(200, { type: 'application/json', text: JSON.stringify(body) }, PAGE_HEADERS);
  return { kind: 'handled' };
}

/** The name of a passkey that is created with the account. */
export const PASSKEY_NAME = 'First passkey';

/** @throws PublicError VALIDATION_ERROR if the two passwords differ */
export function readNewPassword(values: FormValues): string {
  const password = readPassword(values);
  if (password === readPassword(values, 'repeated')) return password;
  throw invalidField('repeated', 'The passwords do not match.');
}

export function newPasswordFields({ label, isRequired }: { label: string; isRequired: boolean }): Markup {
  const password = { type: 'password', autocomplete: 'new-password', isRequired, maxLength: 512 } as const;
  const hint = `At least ${PASSWORD_CHARACTERS_MIN} characters.`;
  return html`${field({ ...password, name: 'password', label, hint })}
${field({ ...password, name: 'repeated', label: 'Repeat the password' })}`;
}
