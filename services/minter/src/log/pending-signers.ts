import { type MintStateRecord, toMintStateKey, toSignerKey } from '@playline/contracts';
import type { SignerLane } from '../ports.ts';

/** Signers with pending assets, built from states as they are read. Stores keys only. */
export class PendingSigners {
  readonly #pending = new Map<string, { readonly lane: SignerLane; readonly states: Set<string> }>();

  apply(state: MintStateRecord): void {
    const key = toSignerKey(state);
    if (state.status === 'pending') {
      const found = this.#pending.get(key);
      // A copy: the record's Buffer may be a slice of everything that was read with it.
      const own = found ?? { lane: { chain: state.chain, signer: Buffer.from(state.signer) }, states: new Set() };
      own.states.add(toMintStateKey(state));
      this.#pending.set(key, own);
      return;
    }
    const found = this.#pending.get(key);
    found?.states.delete(toMintStateKey(state));
    if (found?.states.size === 0) this.#pending.delete(key);
  }

  /** In the order in which the signers were first seen. */
  get lanes(): readonly SignerLane[] {
    return [...this.#pending.values()].map(({ lane }) => lane);
  }
}
