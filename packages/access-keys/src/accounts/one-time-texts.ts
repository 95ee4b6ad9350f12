/** What a text is for: one for another purpose is none. */
export interface PurposeAndText {
  readonly purpose: string;
  readonly text: string;
}

/** Texts that are good for one thing, once: links, challenges, tokens of forms; and tries that are counted. */
export interface OneTimeTexts {
  /** Makes one of 256 bits, base64url, behind which a value is kept. Only its SHA-256 is stored. */
  issue(wanted: { readonly purpose: string; readonly value: string; readonly lifetimeS: number }): Promise<string>;
  /** The value behind a text that is still good; it stays so. Null when it is not. */
  look(wanted: PurposeAndText): Promise<string | null>;
  /** The value behind a text, to whoever asks first; null to everybody else, and when its time is over. */
  take(wanted: PurposeAndText): Promise<string | null>;
  /** True for whoever is first to name a text that was made elsewhere, false for everybody else within the lifetime. */
  spend(wanted: PurposeAndText & { readonly lifetimeS: number }): Promise<boolean>;
  /** Counts one more try, and says the how manieth it is since the first of a window. The name is stored hashed. */
  countAttempt(wanted: { readonly name: string; readonly windowS: number }): Promise<number>;
  forgetAttempts(name: string): Promise<void>;
}
