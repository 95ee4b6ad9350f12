import type { AccessKeyRecord, KeyRecord } from './access-key.ts';
import { keysOf } from './access-key.ts';
import { type KeyLookup, type KeyLookupOptions, KeyStoreFault, openKeyLookup } from './key-lookup.ts';
import { type KeyKind, parseKey } from './key-text.ts';

/** Opens the keys of environments for verifiers. A process needs one. */
export function openKeys(options: Omit<KeyLookupOptions<AccessKeyRecord, KeyRecord>, 'keysOf'>): KeyLookup<KeyRecord> {
  return openKeyLookup({ ...options, keysOf });
}

export interface KeyVerifierOptions {
  readonly keys: Pick<KeyLookup<KeyRecord>, 'find' | 'isEmpty'>;
  /** ACCESS_KEY_PREFIX, such as `svcapik`. */
  readonly prefix: string;
  /** Only keys of this kind are valid here. */
  readonly kind: KeyKind;
}

/**
 * Whether a key text is valid now. Answers without a promise when the key is known, as almost always.
 * @returns the key, or null for a key that is malformed, unknown, ended or of the other kind
 * @throws KeyStoreFault (or rejects with it) when that is not certain
 */
export type KeyVerifier = (key: string) => KeyRecord | null | Promise<KeyRecord | null>;

/** Creates a verifier for one kind of key. */
export function createKeyVerifier({ keys, prefix, kind }: KeyVerifierOptions): KeyVerifier {
  const isWellFormed = (text: string) => parseKey(prefix, text)?.kind === kind;
  const check = (text: string, key: KeyRecord | null) => {
    // Clients drop messages that are refused with 401. Without any key, a wrong Redis or topic prefix is more likely.
    if (key === null && keys.isEmpty && isWellFormed(text)) throw new KeyStoreFault('there are no access keys at all');
    return key?.kind === kind ? key : null;
  };
  return (text) => {
    const found = keys.find(text, isWellFormed);
    return found instanceof Promise ? found.then((key) => check(text, key)) : check(text, found);
  };
}
