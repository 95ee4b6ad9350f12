import type { MintStateRecord } from '@playline/contracts';
import type { OtherSigners, SignerLane } from '../ports.ts';
import { type ReferenceName, toAttemptKey, toReferenceKey } from './mint-ledger.ts';

/** Which signers hold which reference ids, as states are read on. */
export class SignerHoldings implements Pick<OtherSigners, 'hold' | 'holdsItself' | 'has'> {
  /** By chain and reference id: the signer and the attempt, one after the other. */
  readonly #holders = new Map<string, Map<string, string>>();

  apply(state: MintStateRecord): void {
    const key = `${state.chain}:${toReferenceKey(state)}`;
    const [signer, attempt] = [state.signer.toString('hex'), toAttemptKey(state)];
    const holders = this.#holders.get(key) ?? new Map<string, string>();
    if (state.status !== 'failed') holders.set(signer, attempt);
    else if (holders.get(signer) === attempt) holders.delete(signer);
    if (holders.size === 0) this.#holders.delete(key);
    else this.#holders.set(key, holders);
  }

  hold({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    const holders = this.#holders.get(`${chain}:${toReferenceKey(request)}`);
    return holders !== undefined && (holders.size > 1 || !holders.has(signer.toString('hex')));
  }

  holdsItself({ chain, signer }: SignerLane, request: ReferenceName): boolean {
    return this.#holders.get(`${chain}:${toReferenceKey(request)}`)?.has(signer.toString('hex')) === true;
  }

  has({ chain, signer }: SignerLane, attempt: ReferenceName & Pick<MintStateRecord, 'attemptId'>) {
    const holders = this.#holders.get(`${chain}:${toReferenceKey(attempt)}`);
    return holders?.get(signer.toString('hex')) === toAttemptKey(attempt);
  }
}
