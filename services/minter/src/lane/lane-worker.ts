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
  /** null if no node is configured. All assets then wait. */
  readonly pollMs: number | null;
  takeOver(): Promise<MintLane>;
  readonly logger: Logger;
}

/** Backoff for two processes that keep taking over the same lane from each other. */
const TAKE_OVER_WAIT_MS = 500;
const TAKE_OVER_WAIT_MAX_MS = 30_000;
/** Long enough for an operator's command to fail thousands of assets. */
const TAKEN_OVER_WAIT_MS = 10_000;
const UNKNOWN_CHAIN = 'The minter has no node for this chain.';

/** Runs a signer's lane while this process reads the signer's requests. Opens a new lane when the lane is lost. */
export class LaneWorker {
  readonly lane: SignerLane;
  readonly #parts: LaneWorkerParts;
  readonly #closed = new AbortController();
  /** Monotonic time before which the lane must not be opened. */
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

  get current(): MintLane | null {
    return this.#current;
  }

  /** The fault of the last turn. */
  get fault(): string | null {
    return this.#fault;
  }

  get takeOvers(): number {
    return this.#takeOvers;
  }

  /** @throws Error; the caller must then pass the same requests again */
  async accept(requests: readonly ReceivedRequest[]): Promise<AcceptedRequests> {
    const lane = await this.#open();
    try {
      return await lane.accept(requests);
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
      return Promise.reject(new Error('another writer has taken over the signer'));
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
        const isLaneLost = lane === null || fault instanceof LaneLost;
        if (lane !== null && isLaneLost) this.#drop(lane, fault);
        if (isLaneLost) {
          await pause(waitMs * (1 + Math.random()), signal);
          waitMs = Math.min(2 * waitMs, TAKE_OVER_WAIT_MAX_MS);
          continue;
        }
      }
      await this.#idle(lane);
    }
  }

  async #turn(lane: MintLane): Promise<void> {
    await lane.failUnlinked();
    await (this.#parts.pollMs === null ? lane.wait(UNKNOWN_CHAIN) : lane.turn());
  }

  #report(fault: unknown): void {
    const message = fault instanceof Error ? fault.message : String(fault);
    const { chain, signer } = this.lane;
    if (message !== this.#fault)
      this.#parts.logger.warn({ chain, signer: toHexText(signer), error: fault }, 'lane run failed');
    this.#fault = message;
  }

  /** Waits for the poll interval, or if no assets are pending, until requests arrive. */
  async #idle(lane: MintLane | null): Promise<void> {
    const waker = new AbortController();
    this.#wake = () => waker.abort();
    if (this.#closed.signal.aborted) return;
    const isIdle = lane?.ledger.isIdle === true;
    await (isIdle ? once(waker.signal, 'abort') : pause(this.#parts.pollMs ?? TAKE_OVER_WAIT_MAX_MS, waker.signal));
  }
}

type ManagedWorker = Pick<LaneWorker, 'lane' | 'close'> & {
  readonly current: { readonly ledger: { readonly isIdle: boolean } } | null;
};

interface LaneWorkersParts<W extends ManagedWorker> {
  open(lane: SignerLane): W;
  /** Finds signers with pending assets whose key maps to this partition. */
  find(partition: number): Promise<readonly SignerLane[]>;
  onFault(fault: unknown, message: string): void;
}

/** A check may miss changes between reading the worker and the log, so several consecutive checks must agree. */
const FOREIGN_CHECKS = 12;
const OUTDATED_CHECKS = 2;

interface ManagedEntry<W> {
  readonly worker: W;
  readonly partitions: Set<number>;
  /** The number of consecutive checks in which the worker and the log disagree. */
  mismatches: number;
}

/** Manages workers for the signers whose requests this process reads, possibly from several partitions. */
export class LaneWorkers<W extends ManagedWorker> {
  readonly #parts: LaneWorkersParts<W>;
  readonly #workers = new Map<string, ManagedEntry<W>>();
  /** Assignments per partition. A partition's previous assignment may end after its next assignment begins. */
  readonly #assigned = new Map<number, number>();
  readonly #counted = new WeakSet<object>();
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: LaneWorkersParts<W>) {
    this.#parts = parts;
  }

  get all(): readonly W[] {
    return [...this.#workers.values()].map(({ worker }) => worker);
  }

  of(lane: SignerLane, partition: number): W {
    const managed = this.#manage(lane, partition);
    managed.mismatches = 0;
    return managed.worker;
  }

  #manage(lane: SignerLane, partition: number): ManagedEntry<W> {
    const key = toSignerKey(lane);
    const managed = this.#workers.get(key) ?? { worker: this.#parts.open(lane), partitions: new Set(), mismatches: 0 };
    this.#workers.set(key, managed);
    managed.partitions.add(partition);
    return managed;
  }

  /** Counts an assignment once, even if the call is repeated after a failure. @throws Error if states cannot be read */
  async assign(assignment: { readonly partition: number }): Promise<void> {
    const { partition } = assignment;
    if (!this.#counted.has(assignment)) this.#assigned.set(partition, (this.#assigned.get(partition) ?? 0) + 1);
    this.#counted.add(assignment);
    for (const lane of await this.#parts.find(partition)) this.of(lane, partition);
  }

  revoke(partition: number): void {
    const remaining = (this.#assigned.get(partition) ?? 0) - 1;
    if (remaining > 0) {
      this.#assigned.set(partition, remaining);
      return;
    }
    this.#assigned.delete(partition);
    for (const [key, { partitions }] of [...this.#workers])
      if (partitions.delete(partition) && partitions.size === 0) this.#close(key);
  }

  /**
   * Opens workers for pending assets that another process wrote, closes workers whose assets belong to another process,
   * and replaces idle workers that were fenced. @returns whether assets are pending in this process
   */
  async reconcile(): Promise<boolean> {
    const isIdle = ({ worker }: ManagedEntry<W>) => worker.current?.ledger.isIdle ?? null;
    const before = [...this.#workers].map(([key, managed]) => ({ key, managed, wasIdle: isIdle(managed) }));
    const found = await this.#openFoundWorkers();
    for (const { key, managed, wasIdle } of before) {
      // Skips workers that have not read the log yet.
      if (this.#workers.get(key) !== managed || wasIdle === null || isIdle(managed) === null) continue;
      const isMismatch = isIdle(managed) === wasIdle && found.has(key) === wasIdle;
      managed.mismatches = isMismatch ? managed.mismatches + 1 : 0;
      if (wasIdle && managed.mismatches >= OUTDATED_CHECKS) this.#renew(key);
      else if (managed.mismatches >= FOREIGN_CHECKS) this.#close(key);
    }
    return found.size > 0 || [...this.#workers.values()].some((managed) => isIdle(managed) === false);
  }

  /** @returns the keys of signers with pending assets in this process's partitions */
  async #openFoundWorkers(): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    // Runs concurrently, so that the calls share requests to the brokers.
    const partitions = [...this.#assigned.keys()];
    const lanes = await Promise.all(partitions.map((partition) => this.#parts.find(partition)));
    for (const [at, partition] of partitions.entries()) {
      for (const lane of lanes[at]!) {
        if (!this.#assigned.has(partition)) continue;
        this.#manage(lane, partition);
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
    const closed = worker.close().catch((fault) => this.#parts.onFault(fault, 'closing the lane failed'));
    this.#closing.add(closed);
    void closed.finally(() => this.#closing.delete(closed));
  }
}
