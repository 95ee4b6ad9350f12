/** Redirects to the OpenID Connect provider, and the forms that start a redirect. */
import { type OpenIdSignIn, ProviderUnavailable } from '@playline/access-keys';
import { html, type Markup } from '@playline/api-docs';
import type { PageResponse, Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';

/** Path of the redirect URI that is registered with the provider. */
export const OPEN_ID_PATH = '/sign-in/openid';

/** Why the user was redirected. Stored until the callback, so it must not contain a secret. */
export type SignInPurpose =
  | { readonly kind: 'sign in'; readonly next: string }
  /** Links the account. Only the session that started the redirect can complete it. */
  | { readonly kind: 'link'; readonly sessionId: string }
  /** Accepts the one-time link at `path`. Only the browser stores the code of the link. */
  | { readonly kind: 'accept'; readonly path: string; readonly login: string; readonly name: string };

export interface ProviderRedirect {
  readonly purpose: SignInPurpose;
  readonly code?: string;
  /** Requires the user to authenticate with the provider again. */
  readonly needsFreshSignIn?: boolean;
}

export async function redirectToProvider(
  { openId, frame }: Pick<PageParts, 'frame'> & { readonly openId: OpenIdSignIn },
  { purpose, code = '', needsFreshSignIn: isFresh = false }: ProviderRedirect,
): Promise<PageResponse> {
  try {
    const { location, browserText } = await openId.begin({ context: JSON.stringify(purpose), secret: code, isFresh });
    return { kind: 'external redirect', to: location, cookie: frame.providerCookie.toSetCookie(browserText) };
  } catch (error) {
    if (error instanceof ProviderUnavailable) return toProviderUnavailable(openId, toRetryPath(purpose, code));
    throw error;
  }
}

/** Returns the path of the page on which the user can try again. */
export function toRetryPath(purpose: SignInPurpose, code: string): string {
  if (purpose.kind === 'link') return '/settings';
  return purpose.kind === 'accept' ? `${purpose.path}?${new URLSearchParams({ code })}` : '/sign-in';
}

export function toProviderUnavailable({ label }: Pick<OpenIdSignIn, 'label'>, returnPath: string): PageResponse {
  return {
    kind: 'page',
    status: 503,
    title: 'Provider unavailable',
    content: html`<p>${label} is unavailable. Try again in a minute, or use a passkey or password instead.</p>
<p><a class="button" href="${returnPath}">Back</a></p>`,
  };
}

/** Returns a form with a button that redirects to the provider; empty if no provider is configured. */
export function openIdForm(
  { openId }: Pick<PageParts, 'openId'>,
  visit: Visit,
  { action, text, fields = html`` }: { readonly action: string; readonly text: string; readonly fields?: Markup },
): Markup {
  return openId === null
    ? html``
    : visit.form(action, html`${fields}<button class="outline">${text} ${openId.label}</button>`);
}

export function formOrigins({ openId }: Pick<PageParts, 'openId'>): { readonly formOrigins: readonly string[] } {
  return { formOrigins: openId?.origins ?? [] };
}
