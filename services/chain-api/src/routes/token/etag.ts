import { createHash } from 'node:crypto';

/** Sixteen of its bytes: that two bodies of one token share them does not happen. */
const HASH_BYTES = 16;
/** One entity tag, weak or strong: RFC 9110, 8.8.3. Commas may stand between quotes, so a list is not split at them. */
const TAG = /(?:W\/)?("[^"]*")/g;

/** The strong entity tag of a body. */
export function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest().subarray(0, HASH_BYTES).toString('base64url')}"`;
}

/** Whether a caller has what stands now: RFC 9110, 13.1.2. Tags are compared weakly there. */
export function isFresh(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(TAG)].some(([, tag]) => tag === etag);
}
