import type { MintRequestRecord, MintStateRecord } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toReferenceKey } from '../lane/mint-ledger.ts';
import type { ReceivedRequest } from '../ports.ts';
import { BAD_OWNER } from './memory-chain.ts';
import type { MemoryMintLog } from './memory-mint-log.ts';
import { ownerOf, POTIONS, SHIELDS, SIGNERS, SWORDS, toRequest } from './mint-requests.ts';

const REFERENCES_MAX = 400;

/** Simulates a game's requests: batches, some with bad assets, repeated reference ids and repeated tokens. */
export class CampaignTraffic {
  readonly requests: ReceivedRequest[] = [];
  readonly #random: Random;
  readonly #log: MemoryMintLog;
  readonly #attempts = new Map<string, number>();
  #count = 0;

  constructor(random: Random, log: MemoryMintLog) {
    this.#random = random;
    this.#log = log;
  }

  requestsOf(signer: Buffer): readonly ReceivedRequest[] {
    return this.requests.filter(({ request }) => request.signer === signer);
  }

  lastStates(): readonly MintStateRecord[] {
    return [...new Map(this.#log.states.map((state) => [toAttemptKey(state), state])).values()];
  }

  isSettled(): boolean {
    return this.lastStates().every(({ status }) => status !== 'pending');
  }

  describePending(): string {
    const open = this.lastStates().filter(({ status }) => status === 'pending');
    const text = open.map(({ referenceId, stage, nonce, reason }) => `${referenceId} ${stage} ${nonce} ${reason}`);
    return `${this.requests.length} requests, ${open.length} pending: ${text.slice(0, 5).join('; ')}`;
  }

  request(): void {
    const random = this.#random;
    if (this.#count > REFERENCES_MAX) return;
    const count = random.chance(0.05) ? 100 : 1 + random.below(6);
    const contract = random.pick([SWORDS, SHIELDS, POTIONS]);
    const byId = contract === POTIONS || random.chance(0.5);
    const bad = random.chance(0.4) ? random.below(count) : -1;
    for (let at = 0; at < count; at++) {
      // Some tokens are requested twice. Only one of the two requests may succeed.
      const number = random.chance(0.03) ? random.below(this.#count + 1) : this.#count;
      const owner = at === bad ? BAD_OWNER : ownerOf(random.below(contract === POTIONS ? 2 : 5));
      const amount = contract === POTIONS ? String(1 + random.below(9)) : null;
      const asset = { contract, owner, tokenId: byId ? String(number) : null, amount };
      this.#append(`reference ${this.#count}`, asset);
      // Requests the same asset again, possibly with another signer, as when a collection changes its signer.
      if (random.chance(0.1)) this.#append(`reference ${this.#count}`, asset);
      this.#count++;
    }
  }

  requestAgain(): void {
    if (this.requests.length === 0) return;
    const { request } = this.#random.pick(this.requests);
    const { referenceId, contractAddress, tokenId, amount } = request;
    const contract = `0x${contractAddress.toString('hex')}`;
    this.#append(referenceId, { contract, owner: ownerOf(0), tokenId, amount });
  }

  #append(referenceId: string, asset: Partial<MintRequestRecord> & { contract: string; owner: string }): void {
    const reference = toReferenceKey(toRequest(referenceId, asset));
    const attempt = (this.#attempts.get(reference) ?? 0) + 1;
    this.#attempts.set(reference, attempt);
    // Usually uses the first signer. Simulates lost claims by sometimes using the other signer.
    const signer = SIGNERS[this.#random.chance(0.3) ? 1 : 0];
    const request = toRequest(referenceId, { ...asset, signer, attempt });
    this.requests.push({ request, partition: 0, offset: this.requestsOf(signer).length });
  }
}
