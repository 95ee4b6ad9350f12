import type { LaneChange, LaneWriter } from '../ports.ts';
import { LaneOver } from './lane-over.ts';
import type { MintLedger } from './mint-ledger.ts';

/** Writes what a lane decides, one change after the other, and lets its ledger follow. */
export class LaneJournal {
  readonly #writer: LaneWriter;
  readonly #ledger: MintLedger;
  #writing: Promise<void> = Promise.resolve();

  constructor(writer: LaneWriter, ledger: MintLedger) {
    this.#writer = writer;
    this.#ledger = ledger;
  }

  /**
   * What is appended is followed only once it stands: nothing is ever decided by what may be lost.
   * @throws LaneOver, from then on for ever
   */
  append({ states = [], transactions = [], forgotten = [] }: Partial<LaneChange>): Promise<void> {
    if (states.length + transactions.length + forgotten.length === 0) return Promise.resolve();
    const change = { states, transactions, forgotten };
    const written = this.#writing.then(async () => {
      await this.#writer.append(change);
      this.#ledger.apply(change);
    });
    this.#writing = written.catch((cause: unknown) => {
      throw new LaneOver('what was written may not stand', { cause });
    });
    return this.#writing;
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}
