import { PublicError } from '@playline/errors';
import type { AccountRecord } from './account.ts';
import { createToken, hashToken, type OneTimeTokens } from './one-time-tokens.ts';

/** An identity at the provider. Only issuer and subject identify a person; email addresses are never compared. */
export type OpenIdSubject = NonNullable<AccountRecord['openId']>;

/** An authorization request. The provider's response is verified against it. */
export interface OpenIdRequest {
  /** 256 bits each, base64url. They bind the callback, the token and the code exchange (PKCE) to this request. */
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUri: string;
  /** Requires that the person signed in at the provider within the last ten minutes. */
  readonly isFresh: boolean;
}

export interface OpenIdProof {
  readonly openId: OpenIdSubject;
  /** Time of the sign-in at the provider, in epoch milliseconds; null if the provider does not report it. */
  readonly authenticatedAt: number | null;
}

export interface OpenIdProvider {
  readonly label: string;
  /** Origins used for redirects and requests, starting with the issuer's. */
  readonly origins: readonly string[];
  /** Returns the provider's authorization URL for a request. @throws ProviderUnavailable */
  authorization(request: OpenIdRequest): Promise<URL>;
  /**
   * @param callback the portal URL with the provider's response parameters
   * @returns null unless state, issuer, code and the signed token are valid for this request
   * @throws ProviderUnavailable
   */
  prove(callback: URL, request: OpenIdRequest): Promise<OpenIdProof | null>;
}

/** The provider does not respond, or its response is unusable. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
}

export function findByOpenId(
  accounts: readonly AccountRecord[],
  { issuer, subject }: OpenIdSubject,
): AccountRecord | null {
  return accounts.find(({ openId }) => openId?.issuer === issuer && openId.subject === subject) ?? null;
}

/** Long enough to sign in with a second factor. */
export const OPEN_ID_LIFETIME_S = 10 * 60;
const PURPOSE = 'open-id';

/** Data that is passed to `begin` and returned by `finish`. */
export interface OpenIdSignInRequest {
  /** Stored unencrypted, so it must not be a secret. */
  readonly context: string;
  /** Stored only in the browser. Empty or base64url. */
  readonly secret: string;
  /** See `OpenIdRequest`. */
  readonly isFresh: boolean;
}

export type OpenIdSignIn = ReturnType<typeof createOpenIdSignIn>;

interface OpenIdSignInParts {
  readonly provider: OpenIdProvider;
  readonly oneTimeTokens: Pick<OneTimeTokens, 'issue' | 'take'>;
  /** The page that calls `finish`. */
  readonly redirectUri: string;
}

/** A pending sign-in, stored under the hash of its state parameter. */
interface PendingSignIn {
  readonly verifier: string;
  readonly nonce: string;
  readonly isFresh: boolean;
  readonly errand: string;
  /** SHA-256 of the browser's secret. */
  readonly browser: string;
}

/** Each sign-in can be completed only once, within ten minutes, and in the browser that started it. */
export function createOpenIdSignIn({ provider, oneTimeTokens, redirectUri }: OpenIdSignInParts) {
  return {
    label: provider.label,
    origins: provider.origins,
    /**
     * @returns the URL to open, and a secret that the browser stores to prove that it started the sign-in
     * @throws ProviderUnavailable
     */
    begin: async ({ context, secret, isFresh }: OpenIdSignInRequest) => {
      const browserText = `${createToken()}.${secret}`;
      const [verifier, nonce] = [createToken(), createToken()];
      const pending: PendingSignIn = { verifier, nonce, isFresh, errand: context, browser: hashToken(browserText) };
      const value = JSON.stringify(pending);
      const state = await oneTimeTokens.issue({ purpose: PURPOSE, value, lifetimeS: OPEN_ID_LIFETIME_S });
      return { location: await provider.authorization({ state, nonce, verifier, isFresh, redirectUri }), browserText };
    },
    /**
     * Consumes the pending sign-in. @param callback.url the requested URL @param callback.browserText see `begin`
     * @throws PublicError UNAUTHORISED_REQUEST for an invalid response or another browser; ProviderUnavailable
     */
    finish: async ({ url, browserText }: { readonly url: URL; readonly browserText: string | null }) => {
      const states = url.searchParams.getAll('state');
      const [state = ''] = states.length === 1 ? states : [];
      // Consume the state before checking it, so that a response can never be replayed.
      const value = await oneTimeTokens.take({ purpose: PURPOSE, text: state });
      if (value === null || browserText === null) throw rejected();
      const { browser, errand: context, ...request } = JSON.parse(value) as PendingSignIn;
      if (hashToken(browserText) !== browser) throw rejected();
      const proof = await provider.prove(url, { ...request, state, redirectUri });
      if (proof === null) throw rejected(request.isFresh);
      return { context, secret: browserText.slice(browserText.indexOf('.') + 1), isFresh: request.isFresh, proof };
    },
  };
}

/** @param isFresh true if the request requires a recent sign-in, which the provider may have failed to confirm */
const rejected = (isFresh = false) =>
  new PublicError('UNAUTHORISED_REQUEST', {
    message: isFresh
      ? 'The provider did not confirm a recent sign-in. Try again, or sign in with a passkey or a password.'
      : 'The provider did not confirm your sign-in, it took too long, or it was started in another browser. Try again.',
  });
