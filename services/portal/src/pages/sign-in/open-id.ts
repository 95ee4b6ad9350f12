import { type OpenIdSignIn, ProviderUnavailable } from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import type { Answer, Visit } from '../../frame/page.ts';
import type { SignInPagesParts } from './parts.ts';

/** Where the provider sends people back to. */
export const OPEN_ID_PATH = '/sign-in/openid';

/** What somebody was sent to the provider for. It is kept while they are there, so it holds no secret. */
export type SignInPurpose =
  | { readonly kind: 'sign in'; readonly next: string }
  /** For the account of a session, and in that session alone. */
  | { readonly kind: 'link'; readonly sessionId: string }
  /** With a link that lets somebody in; its code stays with the browser. `path`: of the page of the link. */
  | { readonly kind: 'accept'; readonly path: string; readonly login: string; readonly name: string };

export interface ProviderRedirect {
  readonly errand: SignInPurpose;
  /** Code of the link, '' without one. */
  readonly code?: string;
  /** The person is to sign in there anew. */
  readonly needsFreshSignIn?: boolean;
}

/** Sends somebody to the provider, or says that it does not answer. */
export async function redirectToProvider(
  { openId, frame }: Pick<SignInPagesParts, 'frame'> & { readonly openId: OpenIdSignIn },
  { errand, code = '', needsFreshSignIn: isFresh = false }: ProviderRedirect,
): Promise<Answer> {
  try {
    const { location, browserText } = await openId.begin({ errand: JSON.stringify(errand), secret: code, isFresh });
    return { kind: 'leave', to: location, cookie: frame.providerCookie.toSetCookie(browserText) };
  } catch (fault) {
    if (fault instanceof ProviderUnavailable) return toProviderUnavailable(openId, returnPathOf(errand, code));
    throw fault;
  }
}

/** Where somebody begins again. */
export function returnPathOf(errand: SignInPurpose, code: string): string {
  if (errand.kind === 'link') return '/settings';
  return errand.kind === 'accept' ? `${errand.path}?${new URLSearchParams({ code })}` : '/sign-in';
}

/** What is shown while the provider does not answer: the other ways in are none of its business. */
export function toProviderUnavailable({ label }: Pick<OpenIdSignIn, 'label'>, back: string): Answer {
  return {
    kind: 'page',
    status: 503,
    title: 'Not at the moment',
    content: html`<p>${label} does not answer at the moment. Try again in a minute, or go on with a passkey or a password.</p>
<p><a class="button" href="${back}">Back</a></p>`,
  };
}

/** A form with one button that leads to the provider; nothing where there is none. */
export function openIdForm(
  { openId }: Pick<SignInPagesParts, 'openId'>,
  visit: Visit,
  { deed, text, fields = html`` }: { readonly deed: string; readonly text: string; readonly fields?: Markup },
): Markup {
  return openId === null ? html`` : visit.form(deed, html`${fields}<button>${text} ${openId.label}</button>`);
}

/** Of an answer whose page has such a form. */
export function formsTo({ openId }: Pick<SignInPagesParts, 'openId'>): { readonly formsTo: readonly string[] } {
  return { formsTo: openId?.origins ?? [] };
}
