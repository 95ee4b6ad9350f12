import { PublicError } from '@playline/errors';
import type { AccountRecord } from './account.ts';
import { createToken, hashToken, type OneTimeTexts } from './one-time-texts.ts';

/**
 * A person's identity at a provider. Two are the same only if issuer and subject are the same, letter by letter. Mail
 * addresses are never compared.
 */
export type OpenIdSubject = NonNullable<AccountRecord['openId']>;

/** What a provider is asked, and what its answer is checked against. */
export interface OpenIdRequest {
  /**
   * 256 bits each, base64url: they tie the browser's answer, the token, and the exchange of one for the other (PKCE) to
   * this question.
   */
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where the browser comes back to: a page of ours. */
  readonly redirectUri: string;
  /**
   * The person must sign in at the provider again, even with a session there. The token says when; ten minutes ago at
   * most.
   */
  readonly isFresh: boolean;
}

/** A person whose identity a provider has confirmed. */
export interface OpenIdProof {
  readonly openId: OpenIdSubject;
  /** When they signed in there, epoch milliseconds; null when the provider does not say. */
  readonly authenticatedAt: number | null;
}

/** The configured provider of a portal. */
export interface OpenIdProvider {
  /** Name of the provider for people. */
  readonly label: string;
  /** Origins for redirects and requests, its issuer's first. */
  readonly origins: readonly string[];
  /** The page of the provider for a question. @throws ProviderAway */
  authorization(question: OpenIdRequest): Promise<URL>;
  /**
   * Finds out who has come back from the provider.
   * @param cameBack our page, with the parameters that the provider added
   * @returns null unless all of this is right: state, issuer, code, and a valid signed token that is meant for us and
   * answers this question
   * @throws ProviderAway
   */
  prove(cameBack: URL, question: OpenIdRequest): Promise<OpenIdProof | null>;
}

/** The provider does not answer, or its answer cannot be used. The person who signs in is not at fault. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderAway';
}

/** The account that is linked to an identity at a provider; null when there is none. */
export function findByOpenId(
  accounts: readonly AccountRecord[],
  { issuer, subject }: OpenIdSubject,
): AccountRecord | null {
  return accounts.find(({ openId }) => openId?.issuer === issuer && openId.subject === subject) ?? null;
}

/** Enough time to sign in at the provider, also to look for a second factor. */
export const OPEN_ID_LIFETIME_S = 10 * 60;
const PURPOSE = 'open-id';

/** Why somebody is sent to the provider. */
export interface OpenIdSignInRequest {
  /** Returned when the person comes back. It is stored in the clear, so it must not contain a secret. */
  readonly errand: string;
  /** Kept by the browser only and stored nowhere; returned when the person comes back. '' or base64url. */
  readonly secret: string;
  /** As in `OpenIdQuestion`. */
  readonly isFresh: boolean;
}

export interface OpenIdSignIn {
  readonly label: string;
  readonly origins: readonly string[];
  /**
   *
   * @returns the address that the browser is to open, and a text that the browser must keep until the person comes
   * back: it proves that it is the same browser
   * @throws ProviderAway
   */
  begin(errand: OpenIdSignInRequest): Promise<{ readonly location: URL; readonly browserText: string }>;
  /**
   *
   * @param cameBack `url`: of the page that was requested; `browserText`: what the browser has kept, null for nothing
   * @throws PublicError UNAUTHORISED_REQUEST when anything is wrong: no sign-in was started, it is too old, was
   * finished before or started in another browser, or the provider does not vouch. ProviderAway. In each case the
   * sign-in is used up
   */
  finish(cameBack: {
    readonly url: URL;
    readonly browserText: string | null;
  }): Promise<OpenIdSignInRequest & { readonly proof: OpenIdProof }>;
}

interface OpenIdSignInParts {
  readonly provider: OpenIdProvider;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'take'>;
  /** Of the page that calls `finish`. */
  readonly redirectUri: string;
}

/** What is stored of a sign-in that is under way, under the hash of its state. */
interface Kept {
  readonly verifier: string;
  readonly nonce: string;
  readonly isFresh: boolean;
  readonly errand: string;
  /** SHA-256 of what the browser keeps. */
  readonly browser: string;
}

/** Builds the way to a provider and back: begun and ended in one browser, once, within ten minutes. */
export function createOpenIdSignIn({ provider, oneTimeTexts, redirectUri }: OpenIdSignInParts): OpenIdSignIn {
  return {
    label: provider.label,
    origins: provider.origins,
    begin: async ({ errand, secret, isFresh }) => {
      const browserText = `${createToken()}.${secret}`;
      const [verifier, nonce] = [createToken(), createToken()];
      const kept: Kept = { verifier, nonce, isFresh, errand, browser: hashToken(browserText) };
      const value = JSON.stringify(kept);
      const state = await oneTimeTexts.issue({ purpose: PURPOSE, value, lifetimeS: OPEN_ID_LIFETIME_S });
      return { location: await provider.authorization({ state, nonce, verifier, isFresh, redirectUri }), browserText };
    },
    finish: async ({ url, browserText }) => {
      const states = url.searchParams.getAll('state');
      const [state = ''] = states.length === 1 ? states : [];
      // Taken before it is checked: whatever the checks say, this answer can never be used again.
      const value = await oneTimeTexts.take({ purpose: PURPOSE, text: state });
      if (value === null || browserText === null) throw rejected();
      const { browser, errand, ...asked } = JSON.parse(value) as Kept;
      if (hashToken(browserText) !== browser) throw rejected();
      const proof = await provider.prove(url, { ...asked, state, redirectUri });
      if (proof === null) throw rejected(asked.isFresh);
      return { errand, secret: browserText.slice(browserText.indexOf('.') + 1), isFresh: asked.isFresh, proof };
    },
  };
}

/** @param isFresh a provider may vouch for somebody, and not say when they signed in */
const rejected = (isFresh = false) =>
  new PublicError('UNAUTHORISED_REQUEST', {
    message: isFresh
      ? 'It was not said there that you have just signed in: begin again, or sign in with a passkey or a password.'
      : 'You were not signed in there, or it took too long, or came back in another browser: begin again.',
  });
