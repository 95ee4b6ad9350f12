/** Fate of one sent message. */
export const FATES = ['unsent', 'unknown', 'accepted', 'rejected'] as const;
export type Fate = (typeof FATES)[number];

/** One byte per message, by sequence number: a run of a million messages takes one megabyte. */
export interface Ledger {
  /** Takes the next sequence number. */
  take(): number;
  set(sequence: number, fate: Fate): void;
  fateOf(sequence: number): Fate;
  /** Sequence numbers taken so far. */
  readonly taken: number;
  count(fate: Fate): number;
}

/** Initial size; it doubles when the ledger is full. */
const ROOM_FIRST = 65_536;

export function createLedger(): Ledger {
  let fates = new Uint8Array(ROOM_FIRST);
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take: () => {
      if (taken === fates.length) {
        const wider = new Uint8Array(fates.length * 2);
        wider.set(fates);
        fates = wider;
      }
      return taken++;
    },
    set: (sequence, fate) => {
      if (sequence >= taken) throw new RangeError(`sequence ${sequence} was never taken`);
      fates[sequence] = FATES.indexOf(fate);
    },
    fateOf: (sequence) => FATES[fates[sequence] ?? 0]!,
    count: (fate) => {
      const code = FATES.indexOf(fate);
      let count = 0;
      for (let sequence = 0; sequence < taken; sequence++) if (fates[sequence] === code) count++;
      return count;
    },
  };
}
