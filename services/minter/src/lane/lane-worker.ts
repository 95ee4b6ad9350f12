import { once } from 'node:events';
import { toHexText } from '@playline/contracts';
import type { Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { PlacedRequest, SignerLane } from '../ports.ts';
import type { AcceptedRequests } from '../steps/accept-requests.ts';
import { LaneOver } from './lane-context.ts';
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
  #standing: MintLane | null = null;
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
  get standing(): MintLane | null {
    return this.#standing;
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
  async take(requests: readonly PlacedRequest[]): Promise<AcceptedRequests> {
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
        this.#standing = lane;
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
    if (this.#standing !== lane) return;
    if (fault instanceof LaneOver && fault.isTakenOver) this.#opensAtMs = performance.now() + TAKEN_OVER_WAIT_MS;
    this.#standing = null;
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
        else this.#tell(fault);
      } catch (fault) {
        this.#tell(fault);
        const isOver = lane === null || fault instanceof LaneOver;
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

  #tell(fault: unknown): void {
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
