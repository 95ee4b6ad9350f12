import { toSignerKey } from '@playline/contracts';
import type { SignerLane } from '../ports.ts';
import type { LaneWorker } from './lane-worker.ts';

/** As much of a worker as it is kept by. */
export type KeptWorker = Pick<LaneWorker, 'lane' | 'close'> & {
  readonly standing: { readonly ledger: { readonly isIdle: boolean } } | null;
};

export interface LaneWorkersParts<W extends KeptWorker> {
  open(lane: SignerLane): W;
  /** Signers with pending assets whose requests stand in a partition, by the count of partitions of today. */
  find(partition: number): Promise<readonly SignerLane[]>;
  onFault(fault: unknown, words: string): void;
}

/**
 * Workers of the signers whose requests are read here. A signer has requests in several partitions once an operator has
 * added some: its worker lives as long as one of them is read here. What it leaves pending is found by whoever reads the
 * partition that the key of the signer gives today.
 */
export class LaneWorkers<W extends KeptWorker> {
  readonly #parts: LaneWorkersParts<W>;
  readonly #workers = new Map<string, { readonly worker: W; readonly partitions: Set<number> }>();
  /** Assignments of each partition: the end of an earlier one waits for its last batch, and may come behind the next one. */
  readonly #assigned = new Map<number, number>();
  readonly #counted = new WeakSet<object>();
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: LaneWorkersParts<W>) {
    this.#parts = parts;
  }

  get all(): readonly W[] {
    return [...this.#workers.values()].map(({ worker }) => worker);
  }

  /** The worker of a signer, which has requests in this partition. */
  of(lane: SignerLane, partition: number): W {
    const key = toSignerKey(lane);
    const found = this.#workers.get(key) ?? { worker: this.#parts.open(lane), partitions: new Set() };
    this.#workers.set(key, found);
    found.partitions.add(partition);
    return found.worker;
  }

  /**
   * A partition is read here from now on. It counts once, also where this fails and is asked for again with the same
   * assignment: its end is told once, whatever became of that.
   * @throws Error when the states of mints cannot be read
   */
  async assign(assignment: { readonly partition: number }): Promise<void> {
    const { partition } = assignment;
    if (!this.#counted.has(assignment)) this.#assigned.set(partition, (this.#assigned.get(partition) ?? 0) + 1);
    this.#counted.add(assignment);
    for (const lane of await this.#parts.find(partition)) this.of(lane, partition);
  }

  /** An assignment of a partition has ended: it is read here no more, unless another one stands. */
  revoke(partition: number): void {
    const left = (this.#assigned.get(partition) ?? 0) - 1;
    if (left > 0) {
      this.#assigned.set(partition, left);
      return;
    }
    this.#assigned.delete(partition);
    for (const [key, { partitions }] of [...this.#workers])
      if (partitions.delete(partition) && partitions.size === 0) this.#close(key);
  }

  /**
   * Opens workers for what somebody has left pending, and closes those that have something pending whose signer is another
   * process's to work for: both would take it from each other.
   */
  async look(): Promise<void> {
    const busy = [...this.#workers].filter(([, { worker }]) => worker.standing?.ledger.isIdle === false);
    const found = new Set<string>();
    for (const partition of [...this.#assigned.keys()]) {
      for (const lane of await this.#parts.find(partition)) {
        if (!this.#assigned.has(partition)) continue;
        this.of(lane, partition);
        found.add(toSignerKey(lane));
      }
    }
    for (const [key, { worker }] of busy)
      if (!found.has(key) && this.#workers.get(key)?.worker === worker && worker.standing?.ledger.isIdle === false)
        this.#close(key);
  }

  async close(): Promise<void> {
    for (const key of [...this.#workers.keys()]) this.#close(key);
    await Promise.all(this.#closing);
  }

  #close(key: string): void {
    const { worker } = this.#workers.get(key)!;
    this.#workers.delete(key);
    const closed = worker.close().catch((fault) => this.#parts.onFault(fault, 'a lane was not closed cleanly'));
    this.#closing.add(closed);
    void closed.finally(() => this.#closing.delete(closed));
  }
}
