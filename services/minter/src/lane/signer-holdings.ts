import type { MintStateRecord } from '@playline/contracts';
import type { OtherSigners, SignerLane } from '../ports.ts';
import { DigestTable } from './digest-table.ts';
import { toAttemptKey } from './failed-attempts.ts';
import { type ReferenceName, toReferenceKey } from './mint-ledger.ts';

/** Which signers hold which reference ids, as states are read on. */
export class SignerHoldings implements Pick<OtherSigners, 'hold' | 'holdsItself' | 'has'> {
  /** By chain and reference id of pending assets: the signer and the attempt, one after the other. */
  readonly #pending = new Map<string, Map<string, string>>();
  /** By chain and reference id of minted assets: the number of the signer. */
  readonly #minted = new DigestTable();
  readonly #numbers = new Map<string, number>();

  apply(state: MintStateRecord): void {
    const key = `${state.chain}:${toReferenceKey(state)}`;
    const [signer, attempt] = [state.signer.toString('hex'), toAttemptKey(state)];
    const pending = this.#pending.get(key) ?? new Map<string, string>();
    if (state.status === 'pending') pending.set(signer, attempt);
    else if (pending.get(signer) === attempt) pending.delete(signer);
    if (state.status === 'succeeded') this.#minted.set(key, this.#numberOf(signer));
    if (pending.size === 0) this.#pending.delete(key);
    else this.#pending.set(key, pending);
  }

  #numberOf(signer: string): number {
    const number = this.#numbers.get(signer) ?? this.#numbers.size + 1;
    this.#numbers.set(signer, number);
    return number;
  }

  hold({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const own = signer.toString('hex');
    const minted = this.#minted.get(key);
    if (minted !== 0 && minted !== this.#numbers.get(own)) return true;
    const pending = this.#pending.get(key);
    return pending !== undefined && (pending.size > 1 || !pending.has(own));
  }

  holdsItself({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const key = `${chain}:${toReferenceKey(request)}`;
    const own = signer.toString('hex');
    const minted = this.#minted.get(key);
    return (minted !== 0 && minted === this.#numbers.get(own)) || this.#pending.get(key)?.has(own) === true;
  }

  has({ chain, signer }: SignerLane, attempt: ReferenceName & Pick<MintStateRecord, 'attemptId'>): boolean {
    const pending = this.#pending.get(`${chain}:${toReferenceKey(attempt)}`);
    return pending?.get(signer.toString('hex')) === toAttemptKey(attempt);
  }
}
