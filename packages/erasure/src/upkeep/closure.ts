import { createHash } from 'node:crypto';
import type { ErasureReceipt, ErasureRequest } from '../records.ts';

/** The hash that a receipt bears: SHA-256 of the keys, each once, in the order of their bytes. 32 bytes. */
export function hashClosure(keys: Iterable<Buffer>): Buffer {
  const each = new Map([...keys].map((key) => [key.toString('latin1'), key]));
  return createHash('sha256')
    .update(Buffer.concat([...each.values()].sort(Buffer.compare)))
    .digest();
}

/**
 * What the stores still tell of the keys of one erasure: those of its fences, and those that its request names. A receipt
 * has none. A fence that a later erasure of the same person raised bears the id of that one; the request stays.
 */
export class KnownKeys {
  readonly #keys = new Map<string, Buffer>();

  constructor(request: ErasureRequest | undefined) {
    for (const key of [...(request?.subjectKeys ?? []), ...(request?.memberKeys ?? [])]) this.add(key);
  }

  add(key: Buffer): void {
    this.#keys.set(key.toString('latin1'), key);
  }

  has(key: Buffer): boolean {
    return this.#keys.has(key.toString('latin1'));
  }

  get all(): Buffer[] {
    return [...this.#keys.values()];
  }

  /**
   * Whether these are the keys that the receipt was made of, by its hash; `incomplete` while there are fewer, since then
   * the hash says nothing.
   */
  compare({ closureCount, closureHash }: ErasureReceipt): 'matches' | 'differs' | 'incomplete' {
    if (this.#keys.size < closureCount) return 'incomplete';
    return hashClosure(this.all).equals(closureHash) ? 'matches' : 'differs';
  }
}
