import { type MintStateRecord, toMintStateKey, toSignerKey } from '@playline/contracts';
import type { SignerLane } from '../ports.ts';

/** Signers that have something pending, as states are read on. Keeps keys alone: a state may have 16 KiB of metadata. */
export class PendingSigners {
  readonly #pending = new Map<string, { readonly lane: SignerLane; readonly states: Set<string> }>();

  apply(state: MintStateRecord): void {
    const key = toSignerKey(state);
    if (state.status === 'pending') {
      const found = this.#pending.get(key);
      // A copy: the record's own bytes may be a part of all that was read with it.
      const own = found ?? { lane: { chain: state.chain, signer: Buffer.from(state.signer) }, states: new Set() };
      own.states.add(toMintStateKey(state));
      this.#pending.set(key, own);
      return;
    }
    const found = this.#pending.get(key);
    found?.states.delete(toMintStateKey(state));
    if (found?.states.size === 0) this.#pending.delete(key);
  }

  /** In the order in which they began. */
  get lanes(): readonly SignerLane[] {
    return [...this.#pending.values()].map(({ lane }) => lane);
  }
}
