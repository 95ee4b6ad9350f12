import { hash, randomBytes } from 'node:crypto';

/** 256 random bits, base64url. */
export const createToken = (): string => randomBytes(32).toString('base64url');

/** The stored form of a text: SHA-256, hexadecimal. */
export const hashToken = (text: string): string => hash('sha256', text, 'hex');

/** A text, valid for one purpose only. */
export interface PurposeAndText {
  readonly purpose: string;
  readonly text: string;
}

/** Texts that are valid once: links, challenges, tokens of forms. Also counts failed attempts. */
export interface OneTimeTexts {
  /** Creates a text of 256 bits (base64url) for a value. Only its SHA-256 is stored. */
  issue(wanted: { readonly purpose: string; readonly value: string; readonly lifetimeS: number }): Promise<string>;
  /** The value of a valid text, which stays valid; else null. */
  read(wanted: PurposeAndText): Promise<string | null>;
  /** The value of a text for the first caller; null for every other one, and after its lifetime. */
  take(wanted: PurposeAndText): Promise<string | null>;
  /** Marks a text that was made elsewhere as used. True for the first caller within the lifetime. */
  spend(wanted: PurposeAndText & { readonly lifetimeS: number }): Promise<boolean>;
  /** Counts an attempt. Returns their number since the first one in the window. Only a hash of the name is stored. */
  countAttempt(wanted: { readonly name: string; readonly windowS: number }): Promise<number>;
  forgetAttempts(name: string): Promise<void>;
}
