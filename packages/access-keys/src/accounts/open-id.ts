import type { AccountRecord } from './account.ts';

/** Who somebody is at a provider: two accounts are one when both are the same, letter by letter. No address joins them. */
export type OpenIdSubject = NonNullable<AccountRecord['openId']>;

/** What a provider is asked, and what its answer is held against. */
export interface OpenIdQuestion {
  /** 256 bits each, base64url: of the answer in the browser, of the token, and of the exchange of one for the other (PKCE). */
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Where the browser comes back to: a page of ours. */
  readonly redirectUri: string;
  /** The person is to sign in there anew, whatever sign-in of theirs stands: the token says when, at most ten minutes ago. */
  readonly isFresh: boolean;
}

/** Somebody whom a provider vouches for. */
export interface OpenIdProof {
  readonly openId: OpenIdSubject;
  /** When they signed in there, epoch milliseconds; null when the provider does not say. */
  readonly authenticatedAt: number | null;
}

/** The provider that a portal was told of. */
export interface OpenIdProvider {
  /** What people know it by. */
  readonly label: string;
  /** Where it may send browsers and be asked: its own first. */
  readonly origins: readonly string[];
  /** The page of the provider for a question. @throws ProviderAway */
  authorization(question: OpenIdQuestion): Promise<URL>;
  /**
   * Who somebody is that has come back from there.
   * @param cameBack our page, with what the provider has sent along
   * @returns null unless all of it is right: state, issuer, code, and a token for us, of this question, that is signed and good
   * @throws ProviderAway
   */
  prove(cameBack: URL, question: OpenIdQuestion): Promise<OpenIdProof | null>;
}

/** The provider does not answer, or says nothing that can be used: it is nobody's fault who signs in. */
export class ProviderAway extends Error {
  override readonly name = 'ProviderAway';
}

/** Who signs in by a provider as somebody; null when nobody does. */
export function findByOpenId(
  accounts: readonly AccountRecord[],
  { issuer, subject }: OpenIdSubject,
): AccountRecord | null {
  return accounts.find(({ openId }) => openId?.issuer === issuer && openId.subject === subject) ?? null;
}
