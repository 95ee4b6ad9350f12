import type { LaneChange, LaneWriter } from '../ports.ts';
import { LaneOver } from './lane-over.ts';
import type { MintLedger } from './mint-ledger.ts';

/** Records of one transaction, which then stays far below the ten seconds after which brokers abort it. */
const PIECE = 500;

/** Writes what a lane decides, one change after the other, and lets its ledger follow. */
export class LaneJournal {
  readonly #writer: Pick<LaneWriter, 'append' | 'close'>;
  readonly #ledger: MintLedger;
  #writing: Promise<void> = Promise.resolve();

  constructor(writer: Pick<LaneWriter, 'append' | 'close'>, ledger: MintLedger) {
    this.#writer = writer;
    this.#ledger = ledger;
  }

  /**
   * What is appended is followed only once it stands: nothing is ever decided by what may be lost. Signed bytes stand
   * together with all states of their assets; anything else is written in pieces, since each state counts by itself.
   * @throws LaneOver, from then on for ever
   */
  append({ states = [], transactions = [], forgotten = [] }: Partial<LaneChange>): Promise<void> {
    if (states.length + transactions.length + forgotten.length === 0) return Promise.resolve();
    const change = { states, transactions, forgotten };
    const written = this.#writing.then(async () => {
      for (const piece of transactions.length > 0 ? [change] : toPieces(change)) {
        await this.#writer.append(piece);
        this.#ledger.apply(piece);
      }
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

function toPieces({ states, forgotten }: LaneChange): readonly LaneChange[] {
  const nothing: LaneChange = { states: [], transactions: [], forgotten: [] };
  return [
    ...inPieces(states).map((some) => ({ ...nothing, states: some })),
    ...inPieces(forgotten).map((some) => ({ ...nothing, forgotten: some })),
  ];
}

const inPieces = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / PIECE) }, (_, at) => all.slice(at * PIECE, (at + 1) * PIECE));
