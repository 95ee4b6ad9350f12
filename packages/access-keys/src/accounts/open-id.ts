import type { AccountRecord } from './account.ts';

/**
 * A person's identity at a provider. Two are the same only if issuer and subject are the same, letter by letter. Mail
 * addresses are never compared.
 */
export type OpenIdSubject = NonNullable<AccountRecord['openId']>;

/** What a provider is asked, and what its answer is checked against. */
export interface OpenIdQuestion {
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
  authorization(question: OpenIdQuestion): Promise<URL>;
  /**
   * Finds out who has come back from the provider.
   * @param cameBack our page, with the parameters that the provider added
   * @returns null unless all of this is right: state, issuer, code, and a valid signed token that is meant for us and
   * answers this question
   * @throws ProviderAway
   */
  prove(cameBack: URL, question: OpenIdQuestion): Promise<OpenIdProof | null>;
}

/** The provider does not answer, or its answer cannot be used. The person who signs in is not at fault. */
export class ProviderAway extends Error {
  override readonly name = 'ProviderAway';
}

/** The account that is linked to an identity at a provider; null when there is none. */
export function findByOpenId(
  accounts: readonly AccountRecord[],
  { issuer, subject }: OpenIdSubject,
): AccountRecord | null {
  return accounts.find(({ openId }) => openId?.issuer === issuer && openId.subject === subject) ?? null;
}
