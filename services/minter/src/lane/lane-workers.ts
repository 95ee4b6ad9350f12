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
 * A single look proves nothing: between what it sees of a worker and of the log, all that was pending may have ended, or
 * new requests been accepted. So many in a row must see pending assets of another process, or assets that the worker
 * does not know.
 */
const STRANGE_LOOKS = 12;
const OUTDATED_LOOKS = 2;

interface Kept<W> {
  readonly worker: W;
  readonly partitions: Set<number>;
  /** Looks in a row by which the worker and the log do not agree, without a request in between. */
  oddLooks: number;
}

/**
 * Workers of the signers whose requests this process reads. Once an operator has added partitions, a signer has
 * requests in several: its worker lives while this process reads any of them. Assets that it leaves pending are found
 * by the reader of the partition that the signer's key gives now.
 */
export class LaneWorkers<W extends KeptWorker> {
  readonly #parts: LaneWorkersParts<W>;
  readonly #workers = new Map<string, Kept<W>>();
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
    const kept = this.#keep(lane, partition);
    kept.oddLooks = 0;
    return kept.worker;
  }

  #keep(lane: SignerLane, partition: number): Kept<W> {
    const key = toSignerKey(lane);
    const kept = this.#workers.get(key) ?? { worker: this.#parts.open(lane), partitions: new Set(), oddLooks: 0 };
    this.#workers.set(key, kept);
    kept.partitions.add(partition);
    return kept;
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
   * Opens workers for pending assets that another process left, and closes workers whose pending assets belong to
   * another process for a while: two workers would take the lane from each other. While requests of a signer are read
   * here, its worker would be opened again at once. A worker that has nothing to do although assets are pending was
   * fenced, and nothing would tell it: another one is opened in its place.
   * @returns whether assets of any signer are pending here
   */
  async look(): Promise<boolean> {
    const isIdle = ({ worker }: Kept<W>) => worker.standing?.ledger.isIdle ?? null;
    const before = [...this.#workers].map(([key, kept]) => ({ key, kept, wasIdle: isIdle(kept) }));
    const found = await this.#openFound();
    for (const { key, kept, wasIdle } of before) {
      // Before its log is read, nothing is known of it.
      if (this.#workers.get(key) !== kept || wasIdle === null || isIdle(kept) === null) continue;
      const isOdd = isIdle(kept) === wasIdle && found.has(key) === wasIdle;
      kept.oddLooks = isOdd ? kept.oddLooks + 1 : 0;
      if (wasIdle && kept.oddLooks >= OUTDATED_LOOKS) this.#renew(key);
      else if (kept.oddLooks >= STRANGE_LOOKS) this.#close(key);
    }
    return found.size > 0 || [...this.#workers.values()].some((kept) => isIdle(kept) === false);
  }

  /** @returns keys of the signers with pending assets whose key gives a partition that is read here */
  async #openFound(): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    // At once, so that the questions of all partitions share their requests to the brokers.
    const partitions = [...this.#assigned.keys()];
    const lanes = await Promise.all(partitions.map((partition) => this.#parts.find(partition)));
    for (const [at, partition] of partitions.entries()) {
      for (const lane of lanes[at]!) {
        if (!this.#assigned.has(partition)) continue;
        this.#keep(lane, partition);
        found.add(toSignerKey(lane));
      }
    }
    return found;
  }

  async close(): Promise<void> {
    for (const key of [...this.#workers.keys()]) this.#close(key);
    await Promise.all(this.#closing);
  }

  #renew(key: string): void {
    const { worker, partitions } = this.#workers.get(key)!;
    this.#close(key);
    this.#workers.set(key, { worker: this.#parts.open(worker.lane), partitions, oddLooks: 0 });
  }

  #close(key: string): void {
    const { worker } = this.#workers.get(key)!;
    this.#workers.delete(key);
    const closed = worker.close().catch((fault) => this.#parts.onFault(fault, 'a lane was not closed cleanly'));
    this.#closing.add(closed);
    void closed.finally(() => this.#closing.delete(closed));
  }
}
