/** What a fence is asked about: whom a row speaks of and when. Read lazily, since almost no row is fenced. */
export interface FencedQuestion {
  readonly environmentId: string;
  /** Hexadecimal identity keys. */
  readonly keys: readonly string[];
  readonly eventTimeMs: number;
  readonly receivedAtMs: number;
}

/**
 * Erasure fences: an identity that was erased keeps nothing that happened or was received up to its cut-off, however
 * late the record comes.
 */
export interface Fences {
  /** False until every fence is known. Nothing may be written before. */
  readonly loaded: boolean;
  /** True when one of the keys is fenced and the row happened or was received at its cut-off or before. */
  isFenced(row: FencedQuestion): boolean;
}

/** No erasures, so no fences. */
export function createNoFences(): Fences {
  return { loaded: true, isFenced: () => false };
}
