import { PublicError } from '@playline/errors';
import type { AccountRecord } from './account.ts';
import { createToken, hashToken, type OneTimeTexts } from './one-time-texts.ts';

/** An identity at a provider: the same only for equal issuer and subject. Mail addresses are never compared. */
export type OpenIdSubject = NonNullable<AccountRecord['openId']>;

/** An authorization request, against which the response is checked. */
export interface OpenIdRequest {
  /** 256 bits each, base64url: tie the browser's response, the token and their exchange (PKCE) to this request. */
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Requires a sign-in at the provider within the last ten minutes. */
  readonly isFresh: boolean;
}

export interface OpenIdProof {
  readonly openId: OpenIdSubject;
  /** When the person signed in there, epoch milliseconds; null when the provider does not report it. */
  readonly authenticatedAt: number | null;
}

export interface OpenIdProvider {
  readonly label: string;
  /** Origins of redirects and requests, the issuer's first. */
  readonly origins: readonly string[];
  /** The page of the provider for a request. @throws ProviderUnavailable */
  authorization(request: OpenIdRequest): Promise<URL>;
  /**
   * @param callback the portal's page with the provider's parameters
   * @returns null unless state, issuer, code and the signed token are valid for this request
   * @throws ProviderUnavailable
   */
  prove(callback: URL, request: OpenIdRequest): Promise<OpenIdProof | null>;
}

/** The provider does not answer, or not in a usable way. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
}

export function findByOpenId(
  accounts: readonly AccountRecord[],
  { issuer, subject }: OpenIdSubject,
): AccountRecord | null {
  return accounts.find(({ openId }) => openId?.issuer === issuer && openId.subject === subject) ?? null;
}

/** Enough to sign in with a second factor. */
export const OPEN_ID_LIFETIME_S = 10 * 60;
const PURPOSE = 'open-id';

/** Data that is returned when the sign-in is finished. */
export interface OpenIdSignInRequest {
  /** Stored in the clear, so it must not be a secret. */
  readonly errand: string;
  /** Kept only by the browser. '' or base64url. */
  readonly secret: string;
  /** As in `OpenIdRequest`. */
  readonly isFresh: boolean;
}

export type OpenIdSignIn = ReturnType<typeof createOpenIdSignIn>;

interface OpenIdSignInParts {
  readonly provider: OpenIdProvider;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'take'>;
  /** The page that calls `finish`. */
  readonly redirectUri: string;
}

/** A started sign-in, stored under the hash of its state. */
interface StartedSignIn {
  readonly verifier: string;
  readonly nonce: string;
  readonly isFresh: boolean;
  readonly errand: string;
  /** SHA-256 of the browser's text. */
  readonly browser: string;
}

/** A sign-in is started and finished once, in one browser, within ten minutes. */
export function createOpenIdSignIn({ provider, oneTimeTexts, redirectUri }: OpenIdSignInParts) {
  return {
    label: provider.label,
    origins: provider.origins,
    /**
     * @returns the address to open, and a text for the browser to keep, which proves that the same browser returns
     * @throws ProviderUnavailable
     */
    begin: async ({ errand, secret, isFresh }: OpenIdSignInRequest) => {
      const browserText = `${createToken()}.${secret}`;
      const [verifier, nonce] = [createToken(), createToken()];
      const started: StartedSignIn = { verifier, nonce, isFresh, errand, browser: hashToken(browserText) };
      const value = JSON.stringify(started);
      const state = await oneTimeTexts.issue({ purpose: PURPOSE, value, lifetimeS: OPEN_ID_LIFETIME_S });
      return { location: await provider.authorization({ state, nonce, verifier, isFresh, redirectUri }), browserText };
    },
    /**
     * Uses the sign-in up. @param callback `url`: of the requested page; `browserText`: what the browser has kept
     * @throws PublicError UNAUTHORISED_REQUEST when anything is invalid, expired or of another browser; ProviderUnavailable
     */
    finish: async ({ url, browserText }: { readonly url: URL; readonly browserText: string | null }) => {
      const states = url.searchParams.getAll('state');
      const [state = ''] = states.length === 1 ? states : [];
      // Taken before it is checked, so that a response can never be used again.
      const value = await oneTimeTexts.take({ purpose: PURPOSE, text: state });
      if (value === null || browserText === null) throw rejected();
      const { browser, errand, ...request } = JSON.parse(value) as StartedSignIn;
      if (hashToken(browserText) !== browser) throw rejected();
      const proof = await provider.prove(url, { ...request, state, redirectUri });
      if (proof === null) throw rejected(request.isFresh);
      return { errand, secret: browserText.slice(browserText.indexOf('.') + 1), isFresh: request.isFresh, proof };
    },
  };
}

/** @param isFresh a provider may confirm a person, but not when they signed in */
const rejected = (isFresh = false) =>
  new PublicError('UNAUTHORISED_REQUEST', {
    message: isFresh
      ? 'The provider did not confirm a recent sign-in. Try again, or sign in with a passkey or a password.'
      : 'The provider did not confirm your sign-in, it took too long, or it was started in another browser. Try again.',
  });
