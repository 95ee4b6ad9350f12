import { hash, randomBytes } from 'node:crypto';

/** 256 random bits, base64url. */
export const createToken = (): string => randomBytes(32).toString('base64url');

/** SHA-256 of a token, in hexadecimal. Only the hash is stored. */
export const hashToken = (text: string): string => hash('sha256', text, 'hex');

/** A token that is valid for one purpose only. */
export interface OneTimeToken {
  readonly purpose: string;
  readonly text: string;
}

/** One-time tokens for links, challenges and forms, and counters for failed attempts. */
export interface OneTimeTokens {
  /** Creates a 256-bit token (base64url) for a value. Only the token's SHA-256 is stored. */
  issue(wanted: { readonly purpose: string; readonly value: string; readonly lifetimeS: number }): Promise<string>;
  /** Returns a valid token's value without consuming the token; null for an invalid token. */
  read(wanted: OneTimeToken): Promise<string | null>;
  /** Consumes a token and returns its value. Null if the token was already consumed or has expired. */
  take(wanted: OneTimeToken): Promise<string | null>;
  /** Marks an externally created token as used. Returns true to the first caller within the lifetime. */
  spend(wanted: OneTimeToken & { readonly lifetimeS: number }): Promise<boolean>;
  /** Counts an attempt and returns the number of attempts in the current window. Only a hash of the name is stored. */
  countAttempt(wanted: { readonly name: string; readonly windowS: number }): Promise<number>;
  resetAttempts(name: string): Promise<void>;
}
