import { toSignerKey } from '@playline/contracts';
import type { SignerLane } from '../ports.ts';
import type { LaneWorker } from './lane-worker.ts';

/** The part of a worker that is needed to manage it. */
export type KeptWorker = Pick<LaneWorker, 'lane' | 'close'> & {
  readonly standing: { readonly ledger: { readonly isIdle: boolean } } | null;
};

export interface LaneWorkersParts<W extends KeptWorker> {
  open(lane: SignerLane): W;
  /** Signers with pending assets whose key gives this partition, by the current number of partitions. */
  find(partition: number): Promise<readonly SignerLane[]>;
  onFault(fault: unknown, words: string): void;
}

/**
 * Workers of the signers whose requests this process reads. Once an operator has added partitions, a signer has
 * requests in several: its worker lives while this process reads any of them. Assets that it leaves pending are found
 * by the reader of the partition that the signer's key gives now.
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

  /** The worker of a signer that has requests in this partition. */
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
   * Opens workers for pending assets that another process left, and closes workers whose pending assets now belong to
   * another process: two workers would take the lane from each other.
   */
  async look(): Promise<void> {
    const busy = [...this.#workers].filter(([, { worker }]) => worker.standing?.ledger.isIdle === false);
    const found = new Set<string>();
    // At once, so that the questions of all partitions share their requests to the brokers.
    const partitions = [...this.#assigned.keys()];
    const lanes = await Promise.all(partitions.map((partition) => this.#parts.find(partition)));
    for (const [at, partition] of partitions.entries()) {
      for (const lane of lanes[at]!) {
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
