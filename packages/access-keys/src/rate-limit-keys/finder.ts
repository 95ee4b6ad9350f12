import { type KeyLookup, type KeyLookupOptions, openKeyLookup } from '../keys/key-lookup.ts';
import { isRateLimitKeyText } from '../keys/key-text.ts';
import { isGoodAt, type RateLimitKeyRecord } from './rate-limit-key.ts';

export interface RateLimitKeyFinderOptions
  extends Omit<KeyLookupOptions<RateLimitKeyRecord, RateLimitKeyRecord>, 'keysOf'> {
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
  /** Used for the expiry of keys. */
  readonly wallClockMs?: () => number;
}

export interface RateLimitKeyFinder extends Pick<KeyLookup<RateLimitKeyRecord>, 'refresh' | 'close'> {
  /**
   * Finds the key with a text.
   * @returns null for a malformed or unknown text, and for a key that was revoked, was replaced by a refresh or has
   * expired
   * @throws KeyStoreFault when the store cannot answer: that is our fault, not the caller's
   */
  find(text: string): Promise<RateLimitKeyRecord | null>;
}

/** Opens the finder of a process. */
export function openRateLimitKeyFinder(options: RateLimitKeyFinderOptions): RateLimitKeyFinder {
  const { prefix, wallClockMs = Date.now } = options;
  const lookup = openKeyLookup({ ...options, keysOf: (record) => [record] });
  const isWellFormed = (text: string) => isRateLimitKeyText(prefix, text);
  return {
    find: async (text) => {
      const key = await lookup.find(text, isWellFormed);
      return key !== null && isGoodAt(key, wallClockMs()) ? key : null;
    },
    refresh: lookup.refresh,
    close: lookup.close,
  };
}
