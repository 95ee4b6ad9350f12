/** Redirects to the identity provider. */
import { type OpenIdSignIn, ProviderUnavailable } from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import type { Answer, Visit } from '../../frame/page.ts';
import type { PagesParts } from '../index.ts';

/** The redirect address at the provider. */
export const OPEN_ID_PATH = '/sign-in/openid';

/** Why a person was redirected. It is stored in the meantime, so it contains no secret. */
export type SignInPurpose =
  | { readonly kind: 'sign in'; readonly next: string }
  /** Valid only in the session that started it. */
  | { readonly kind: 'link'; readonly sessionId: string }
  /** Of a one-time link at `path`, whose code stays in the browser. */
  | { readonly kind: 'accept'; readonly path: string; readonly login: string; readonly name: string };

export interface ProviderRedirect {
  readonly purpose: SignInPurpose;
  /** Code of a one-time link, '' without one. */
  readonly code?: string;
  /** Requires that the person signs in at the provider again. */
  readonly needsFreshSignIn?: boolean;
}

export async function redirectToProvider(
  { openId, frame }: Pick<PagesParts, 'frame'> & { readonly openId: OpenIdSignIn },
  { purpose, code = '', needsFreshSignIn: isFresh = false }: ProviderRedirect,
): Promise<Answer> {
  try {
    const { location, browserText } = await openId.begin({ errand: JSON.stringify(purpose), secret: code, isFresh });
    return { kind: 'external redirect', to: location, cookie: frame.providerCookie.toSetCookie(browserText) };
  } catch (fault) {
    if (fault instanceof ProviderUnavailable) return toProviderUnavailable(openId, returnPathOf(purpose, code));
    throw fault;
  }
}

/** Where a person can start again. */
export function returnPathOf(purpose: SignInPurpose, code: string): string {
  if (purpose.kind === 'link') return '/settings';
  return purpose.kind === 'accept' ? `${purpose.path}?${new URLSearchParams({ code })}` : '/sign-in';
}

export function toProviderUnavailable({ label }: Pick<OpenIdSignIn, 'label'>, back: string): Answer {
  return {
    kind: 'page',
    status: 503,
    title: 'Provider not available',
    content: html`<p>${label} is not available. Try again in a minute, or use a passkey or a password.</p>
<p><a class="button" href="${back}">Back</a></p>`,
  };
}

/** A form with one button that leads to the provider; empty without one. */
export function openIdForm(
  { openId }: Pick<PagesParts, 'openId'>,
  visit: Visit,
  { action, text, fields = html`` }: { readonly action: string; readonly text: string; readonly fields?: Markup },
): Markup {
  return openId === null ? html`` : visit.form(action, html`${fields}<button>${text} ${openId.label}</button>`);
}

/** For answers with such a form. */
export function formsTo({ openId }: Pick<PagesParts, 'openId'>): { readonly formsTo: readonly string[] } {
  return { formsTo: openId?.origins ?? [] };
}
