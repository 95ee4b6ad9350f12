import { hash, randomBytes } from 'node:crypto';

/** 256 random bits, base64url. */
export function createToken(): string {
  return randomBytes(32).toString('base64url');
}

/** What is stored of a text: SHA-256, hexadecimal. */
export function hashToken(text: string): string {
  return hash('sha256', text, 'hex');
}

/** A text and what it is for. A text made for another purpose does not count. */
export interface PurposeAndText {
  readonly purpose: string;
  readonly text: string;
}

/** Texts that are valid for one purpose and once: links, challenges, tokens of forms. Also counts failed tries. */
export interface OneTimeTexts {
  /** Creates a text of 256 bits (base64url) and stores a value under it. Only the SHA-256 of the text is stored. */
  issue(wanted: { readonly purpose: string; readonly value: string; readonly lifetimeS: number }): Promise<string>;
  /** The value of a text that is still valid; null when it is not. Does not use the text up. */
  read(wanted: PurposeAndText): Promise<string | null>;
  /** The value of a text, for the first caller only. Null for every other caller, and after its lifetime. */
  take(wanted: PurposeAndText): Promise<string | null>;
  /**
   * Marks a text that was made elsewhere as used. True for the first caller, false for all others within the lifetime.
   */
  spend(wanted: PurposeAndText & { readonly lifetimeS: number }): Promise<boolean>;
  /**
   * Counts one more try. Returns how many there were since the first one in the window. The name is stored as a hash.
   */
  countAttempt(wanted: { readonly name: string; readonly windowS: number }): Promise<number>;
  forgetAttempts(name: string): Promise<void>;
}
