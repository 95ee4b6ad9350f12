// Key format: prefix for kind and environment, random part, checksum.
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Publishable keys can send messages. Secret keys can erase data. */
export type KeyKind = 'publishable' | 'secret';
export type KeyEnvironment = 'production' | 'development';

export interface KeyType {
  readonly kind: KeyKind;
  readonly environment: KeyEnvironment;
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 178 bits. */
const RANDOM_CHARACTERS = 30;
/** 62^6 is greater than 2^32, so any CRC32 fits. */
const CHECKSUM_CHARACTERS = 6;
/** The largest multiple of 62 below 256. Using larger bytes would make some characters more likely. */
const UNBIASED_BELOW = 248;
const BODY = new RegExp(`^[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`);

/** For the prefix `svcapik`: `pk_svcapik-`, `pk_svcapik_test-`, `sk_svcapik-` or `sk_svcapik_test-`. */
export const keyPrefixOf = (prefix: string, { kind, environment }: KeyType): string =>
  `${kind === 'publishable' ? 'pk' : 'sk'}_${prefix}${environment === 'development' ? '_test' : ''}-`;

export function createKeyText(prefix: string, type: KeyType): string {
  const unchecked = keyPrefixOf(prefix, type) + randomBase62(RANDOM_CHARACTERS);
  return unchecked + checksumOf(unchecked);
}

/** @returns null if the prefix, length, alphabet or checksum is wrong */
export function parseKey(prefix: string, key: string): KeyType | null {
  const form = formsOf(prefix).get(key.slice(0, key.indexOf('-') + 1));
  return form !== undefined && hasChecksum(key) ? form : null;
}

/** Rate limit keys do not belong to an environment. */
const rateLimitPrefixOf = (prefix: string): string => `rl_${prefix}-`;

export function createRateLimitKeyText(prefix: string): string {
  const unchecked = rateLimitPrefixOf(prefix) + randomBase62(RANDOM_CHARACTERS);
  return unchecked + checksumOf(unchecked);
}

export const isRateLimitKeyText = (prefix: string, key: string): boolean =>
  key.startsWith(rateLimitPrefixOf(prefix)) && hasChecksum(key);

/** First and last characters of the random part, for display. */
export function displayPartsOf(key: string): { readonly first4: string; readonly last4: string } {
  const random = key.slice(key.indexOf('-') + 1);
  return { first4: random.slice(0, 4), last4: random.slice(-4) };
}

/** SHA-256 in hexadecimal. With 178 random bits, a key needs no slow password hash. */
export const hashKey = (key: string): string => hash('sha256', key, 'hex');

const forms = new Map<string, Map<string, KeyType>>();

/** Maps the four prefixes to kind and environment, for one value of ACCESS_KEY_PREFIX. */
function formsOf(prefix: string): Map<string, KeyType> {
  const cached = forms.get(prefix);
  if (cached !== undefined) return cached;
  const created = new Map<string, KeyType>();
  for (const kind of ['publishable', 'secret'] as const)
    for (const environment of ['production', 'development'] as const)
      created.set(keyPrefixOf(prefix, { kind, environment }), { kind, environment });
  forms.set(prefix, created);
  return created;
}

function hasChecksum(key: string): boolean {
  if (!BODY.test(key.slice(key.indexOf('-') + 1))) return false;
  const checksumAt = key.length - CHECKSUM_CHARACTERS;
  return checksumOf(key.slice(0, checksumAt)) === key.slice(checksumAt);
}

function randomBase62(characters: number): string {
  let text = '';
  while (text.length < characters)
    for (const byte of randomBytes(characters))
      if (byte < UNBIASED_BELOW && text.length < characters) text += BASE62[byte % BASE62.length];
  return text;
}

function checksumOf(unchecked: string): string {
  let remainder = crc32(unchecked);
  let text = '';
  for (let i = 0; i < CHECKSUM_CHARACTERS; i++) {
    text = BASE62[remainder % BASE62.length] + text;
    remainder = Math.floor(remainder / BASE62.length);
  }
  return text;
}
