import type { MintStateRecord, MintTransactionRecord } from '@playline/contracts';
import { toMintTransactionKey } from '@playline/contracts';
import { SignerHoldings } from '../log/kafka-mint-log.ts';
import type { LaneChange, LaneWriter, MintLog, OtherSigners, SignerLane } from '../ports.ts';

const laneKeyOf = ({ chain, signer }: SignerLane) => `${chain}:${signer.toString('hex')}`;

async function* stream<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** In-memory logs for states and transactions, with one writer per signer at a time. */
export class MemoryMintLog implements Omit<MintLog, 'others'> {
  readonly states: MintStateRecord[] = [];
  readonly transactions: MintTransactionRecord[] = [];
  readonly #forgotten = new Map<string, number>();
  readonly #epochs = new Map<string, number>();

  async openWriter(lane: SignerLane): Promise<LaneWriter> {
    const key = laneKeyOf(lane);
    const epoch = (this.#epochs.get(key) ?? 0) + 1;
    this.#epochs.set(key, epoch);
    const isOfLane = (record: SignerLane) => laneKeyOf(record) === key;
    return {
      readTransactions: async () =>
        this.transactions.filter((record, at) => isOfLane(record) && !this.#isForgotten(record, at)),
      readStates: () => stream(this.states.filter(isOfLane)),
      append: async (change) => {
        if (this.#epochs.get(key) !== epoch) throw new Error('another writer has taken over the signer');
        this.#write(change);
      },
      close: async () => {},
    };
  }

  #write({ states, transactions, forgotten }: LaneChange): void {
    this.states.push(...states);
    this.transactions.push(...transactions);
    for (const record of forgotten) this.#forgotten.set(toMintTransactionKey(record), this.transactions.length);
  }

  #isForgotten(record: MintTransactionRecord, at: number): boolean {
    return at < (this.#forgotten.get(toMintTransactionKey(record)) ?? 0);
  }

  async lanesOf(): Promise<readonly SignerLane[]> {
    return [...new Map(this.states.map((state) => [laneKeyOf(state), state])).values()];
  }

  createOthers(): OtherSigners {
    const holdings = new SignerHoldings();
    let next = 0;
    return {
      sync: async () => {
        while (next < this.states.length) holdings.apply(this.states[next++]!);
      },
      isHeldByOther: (lane, request) => holdings.isHeldByOther(lane, request),
      isHeldByLane: (lane, request) => holdings.isHeldByLane(lane, request),
      isPending: (lane, attempt) => holdings.isPending(lane, attempt),
    };
  }
}
