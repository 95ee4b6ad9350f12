import { once } from 'node:events';
import { toHexText, toSignerKey } from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { ReceivedRequest, SignerLane } from '../ports.ts';
import type { AcceptedRequests } from '../steps/accept-requests.ts';
import { LaneLost } from './lane-context.ts';
import type { MintLane } from './mint-lane.ts';

export interface LaneWorkerParts {
  readonly lane: SignerLane;
  /** Null: no node of the chain is configured, so all assets wait with that reason. */
  readonly pollMs: number | null;
  takeOver(): Promise<MintLane>;
  readonly logger: Logger;
}

/** Two processes that take a lane from each other must not do so for ever, so each waits longer every time. */
const TAKE_OVER_WAIT_MS = 500;
const TAKE_OVER_WAIT_MAX_MS = 30_000;
/** A command of an operator needs a few seconds to end thousands of assets. Until then it must not be fenced. */
const TAKEN_OVER_WAIT_MS = 10_000;
const UNKNOWN_CHAIN = 'The minter is told of no node of this chain.';

/** Works for one signer while its requests are read by this process. Opens a new lane whenever the writer is over. */
export class LaneWorker {
  readonly lane: SignerLane;
  readonly #parts: LaneWorkerParts;
  readonly #closed = new AbortController();
  /** By the monotonic clock: the lane is not opened before. */
  #opensAtMs = Number.NEGATIVE_INFINITY;
  #opened: Promise<MintLane> | null = null;
  #current: MintLane | null = null;
  #wake: () => void = () => {};
  #takeOvers = 0;
  #fault: string | null = null;
  readonly #ended: Promise<void>;

  constructor(parts: LaneWorkerParts) {
    this.#parts = parts;
    this.lane = parts.lane;
    this.#ended = this.#work();
  }

  /** Null until the lane is opened. */
  get current(): MintLane | null {
    return this.#current;
  }

  /** Why the last turn failed; null when it did not. */
  get fault(): string | null {
    return this.#fault;
  }

  /** How often this process has opened the lane. */
  get takeOvers(): number {
    return this.#takeOvers;
  }

  /** Accepts requests, as `MintLane.take`. @throws Error: the caller must pass the same requests again */
  async take(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    const lane = await this.#open();
    try {
      return await lane.take(requests);
    } catch (fault) {
      this.#drop(lane, fault);
      throw fault;
    } finally {
      this.#wake();
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#wake();
    await this.#ended;
    const lane = await this.#opened?.catch(() => null);
    await lane?.close();
  }

  #open(): Promise<MintLane> {
    if (this.#opened === null && performance.now() < this.#opensAtMs)
      return Promise.reject(new Error('another writer of the signer has taken over'));
    this.#opened ??= this.#parts.takeOver().then(
      (lane) => {
        this.#takeOvers++;
        this.#current = lane;
        return lane;
      },
      (fault) => {
        this.#opened = null;
        throw fault;
      },
    );
    return this.#opened;
  }

  #drop(lane: MintLane, fault: unknown): void {
    if (this.#current !== lane) return;
    if (fault instanceof LaneLost && fault.isTakenOver) this.#opensAtMs = performance.now() + TAKEN_OVER_WAIT_MS;
    this.#current = null;
    this.#opened = null;
    void lane.close().catch(() => {});
  }

  async #work(): Promise<void> {
    const { signal } = this.#closed;
    let waitMs = TAKE_OVER_WAIT_MS;
    while (!signal.aborted) {
      let lane: MintLane | null = null;
      try {
        lane = await this.#open();
        await this.#turn(lane);
        waitMs = TAKE_OVER_WAIT_MS;
        const [fault] = lane.faults;
        if (fault === undefined) this.#fault = null;
        else this.#report(fault);
      } catch (fault) {
        this.#report(fault);
        const isOver = lane === null || fault instanceof LaneLost;
        if (lane !== null && isOver) this.#drop(lane, fault);
        if (isOver) {
          await pause(waitMs * (1 + Math.random()), signal);
          waitMs = Math.min(2 * waitMs, TAKE_OVER_WAIT_MAX_MS);
          continue;
        }
      }
      await this.#rest(lane);
    }
  }

  async #turn(lane: MintLane): Promise<void> {
    await lane.endUnlinked();
    await (this.#parts.pollMs === null ? lane.wait(UNKNOWN_CHAIN) : lane.turn());
  }

  #report(fault: unknown): void {
    const words = fault instanceof Error ? fault.message : String(fault);
    const { chain, signer } = this.lane;
    if (words !== this.#fault)
      this.#parts.logger.warn({ chain, signer: toHexText(signer), error: fault }, 'a lane did not go on');
    this.#fault = words;
  }

  /** Waits until the chain may have changed; with nothing pending, until requests arrive. */
  async #rest(lane: MintLane | null): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    if (this.#closed.signal.aborted) return;
    const isIdle = lane?.ledger.isIdle === true;
    await (isIdle ? once(woken.signal, 'abort') : pause(this.#parts.pollMs ?? TAKE_OVER_WAIT_MAX_MS, woken.signal));
  }
}

/** The part of a worker that is needed to manage it. */
type ManagedWorker = Pick<LaneWorker, 'lane' | 'close'> & {
  readonly current: { readonly ledger: { readonly isIdle: boolean } } | null;
};

interface LaneWorkersParts<W extends ManagedWorker> {
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
const FOREIGN_CHECKS = 12;
const OUTDATED_CHECKS = 2;

interface Managed<W> {
  readonly worker: W;
  readonly partitions: Set<number>;
  /** Looks in a row by which the worker and the log do not agree, without a request in between. */
  mismatches: number;
}

/**
 * Workers of the signers whose requests this process reads. Once an operator has added partitions, a signer has
 * requests in several: its worker lives while this process reads any of them. Assets that it leaves pending are found
 * by the reader of the partition that the signer's key gives now.
 */
export class LaneWorkers<W extends ManagedWorker> {
  readonly #parts: LaneWorkersParts<W>;
  readonly #workers = new Map<string, Managed<W>>();
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
    kept.mismatches = 0;
    return kept.worker;
  }

  #keep(lane: SignerLane, partition: number): Managed<W> {
    const key = toSignerKey(lane);
    const kept = this.#workers.get(key) ?? { worker: this.#parts.open(lane), partitions: new Set(), mismatches: 0 };
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
  async reconcile(): Promise<boolean> {
    const isIdle = ({ worker }: Managed<W>) => worker.current?.ledger.isIdle ?? null;
    const before = [...this.#workers].map(([key, kept]) => ({ key, kept, wasIdle: isIdle(kept) }));
    const found = await this.#openFound();
    for (const { key, kept, wasIdle } of before) {
      // Before its log is read, nothing is known of it.
      if (this.#workers.get(key) !== kept || wasIdle === null || isIdle(kept) === null) continue;
      const isOdd = isIdle(kept) === wasIdle && found.has(key) === wasIdle;
      kept.mismatches = isOdd ? kept.mismatches + 1 : 0;
      if (wasIdle && kept.mismatches >= OUTDATED_CHECKS) this.#renew(key);
      else if (kept.mismatches >= FOREIGN_CHECKS) this.#close(key);
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
    this.#workers.set(key, { worker: this.#parts.open(worker.lane), partitions, mismatches: 0 });
  }

  #close(key: string): void {
    const { worker } = this.#workers.get(key)!;
    this.#workers.delete(key);
    const closed = worker.close().catch((fault) => this.#parts.onFault(fault, 'a lane was not closed cleanly'));
    this.#closing.add(closed);
    void closed.finally(() => this.#closing.delete(closed));
  }
}
