import { PublicError } from '@playline/errors';
import type { OneTimeTexts } from './one-time-texts.ts';
import type { OpenIdProof, OpenIdProvider } from './open-id.ts';
import { createToken, hashToken } from './token.ts';

/** Time to sign in there, also to look for a second factor. */
export const OPEN_ID_LIFETIME_S = 10 * 60;
const PURPOSE = 'open-id';

/** What somebody is sent to the provider for. */
export interface OpenIdErrand {
  /** Told again when they come back; it is kept as it is, so it holds no secret. */
  readonly errand: string;
  /** Stays with the browser: kept nowhere, and told again too. '' or base64url. */
  readonly secret: string;
  /** As in `OpenIdQuestion`. */
  readonly isFresh: boolean;
}

export interface OpenIdSignIn {
  readonly label: string;
  readonly origins: readonly string[];
  /**
   * @returns the address that the browser is to open, and what it is to keep until it comes back: whoever comes without it is
   *   another browser
   * @throws ProviderAway
   */
  begin(errand: OpenIdErrand): Promise<{ readonly location: URL; readonly browserText: string }>;
  /**
   * @param cameBack `url`: of the page that was asked for; `browserText`: what the browser has kept, null for nothing
   * @throws PublicError UNAUTHORISED_REQUEST for whatever is not right: nothing was begun, it is over, has come back before or
   *   in another browser, or the provider does not vouch; ProviderAway. Each time it is used up
   */
  finish(cameBack: {
    readonly url: URL;
    readonly browserText: string | null;
  }): Promise<OpenIdErrand & { readonly proof: OpenIdProof }>;
}

interface OpenIdSignInParts {
  readonly provider: OpenIdProvider;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'take'>;
  /** Of the page that calls `finish`. */
  readonly redirectUri: string;
}

/** What is kept of a way there and back, under the hash of its state. */
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
    ...{ label: provider.label, origins: provider.origins },
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
      // Taken before it is looked at: whatever comes of it, this answer is good for nobody again.
      const value = await oneTimeTexts.take({ purpose: PURPOSE, text: state });
      if (value === null || browserText === null) throw notVouched();
      const { browser, errand, ...asked } = JSON.parse(value) as Kept;
      if (hashToken(browserText) !== browser) throw notVouched();
      const proof = await provider.prove(url, { ...asked, state, redirectUri });
      if (proof === null) throw notVouched(asked.isFresh);
      return { errand, secret: browserText.slice(browserText.indexOf('.') + 1), isFresh: asked.isFresh, proof };
    },
  };
}

/** @param isFresh a provider may vouch for somebody, and not say when they signed in */
const notVouched = (isFresh = false) =>
  new PublicError('UNAUTHORISED_REQUEST', {
    message: isFresh
      ? 'It was not said there that you have just signed in: begin again, or sign in with a passkey or a password.'
      : 'You were not signed in there, or it took too long, or came back in another browser: begin again.',
  });
