import { type ChainNode, describeTokens, NodeFault } from '@playline/chain';
import type { TokenRecord } from '@playline/contracts';
import { pause } from '@playline/stores';

export interface NewTokensOptions {
  readonly chain: string;
  /** Reports a fault. Errors other than NodeFaults are internal errors. */
  readonly onFault: (node: ChainNode, fault: Error) => void;
  /** Returns monotonic time. */
  readonly nowMs: () => number;
  /** How long activities wait for descriptions. */
  readonly waitMs?: number;
}

/** A token whose contract failed even when it was requested alone. */
interface FailingToken {
  readonly failures: number;
  readonly dueAtMs: number;
}

/** Tokens per request. */
const BATCH_MAX = 16;
/** Queues in order of preference, per worker. Slow contracts delay only tokens in the same queue. */
const WORKERS = [
  ['queued', 'single'],
  ['queued', 'single'],
  ['single', 'queued'],
  ['failing', 'single', 'queued'],
] as const;
type Queue = (typeof WORKERS)[number][number];
/** Usually enough to publish a description together with the first activity. */
const WAIT_MS = 1_000;
/** Maximum tokens in progress. Additional tokens are described when they appear again. */
const IN_PROGRESS_MAX = 20_000;
/** Maximum tokens per transaction. */
const PUBLISHED_MAX = 1_000;
/** Delay after a failure, short enough for two more attempts within a minute. */
const RETRY_MIN_MS = 15_000;
const RETRY_MAX_MS = 3_600_000;
/** Delay if there is no `Retry-After`. */
const BUSY_RETRY_MS = 5_000;

/**
 * Describes new tokens. Activities wait at most a second. If a request for several tokens fails, each is requested
 * alone, and only the contracts that fail alone are delayed.
 */
export class NewTokens {
  private readonly options: NewTokensOptions;
  private readonly known = new Set<string>();
  private readonly queued = new Set<string>();
  private readonly single = new Set<string>();
  private readonly failing = new Map<string, FailingToken>();
  /** Requested tokens, with the number of their earlier failures. */
  private readonly requested = new Map<string, number>();
  /** Described tokens that are not published yet. */
  private readonly described = new Map<string, TokenRecord>();
  private readonly workers: (Promise<void> | null)[] = WORKERS.map(() => null);
  private busyUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: NewTokensOptions) {
    this.options = options;
  }

  /**
   * @param readKnown reads published tokens, which an operator may have changed @returns tokens to publish, on each
   * call until `forget`
   */
  async describe(
    node: ChainNode,
    seen: Iterable<string>,
    readKnown: () => Promise<Iterable<string>>,
  ): Promise<readonly TokenRecord[]> {
    this.note(seen);
    if (this.isDue()) {
      for (const token of await readKnown()) this.forget(token);
      const wasIdle = this.workers.every((worker) => worker === null);
      const started = this.begin(node);
      if (wasIdle) await this.waitFor(started);
    }
    if (this.described.size === 0) return [];
    // Other processes may have published tokens in the meantime.
    for (const token of await readKnown()) this.forget(token);
    return [...this.described.values()].slice(0, PUBLISHED_MAX);
  }

  /** Must be called after a token is published. */
  forget(token: string): void {
    this.known.add(token);
    for (const tokens of [this.queued, this.single, this.failing, this.requested, this.described]) tokens.delete(token);
  }

  private note(seen: Iterable<string>): void {
    const open = [this.queued, this.single, this.failing, this.requested, this.described];
    for (const token of seen) {
      if (this.known.has(token) || open.some((tokens) => tokens.has(token))) continue;
      if (open.reduce((sum, { size }) => sum + size, 0) >= IN_PROGRESS_MAX) {
        const [failing] = this.failing.keys();
        if (failing === undefined) return;
        this.failing.delete(failing);
      }
      this.queued.add(token);
    }
  }

  private isDue(): boolean {
    const nowMs = this.options.nowMs();
    if (nowMs < this.busyUntilMs) return false;
    if (this.queued.size + this.single.size > 0) return true;
    for (const { dueAtMs } of this.failing.values()) if (dueAtMs <= nowMs) return true;
    return false;
  }

  /** Starts idle workers. Resolves when all workers are idle again. */
  private async begin(node: ChainNode): Promise<void> {
    for (const [index, order] of WORKERS.entries())
      this.workers[index] ??= this.work(node, order).finally(() => {
        this.workers[index] = null;
      });
    await Promise.all(this.workers);
  }

  private async waitFor(begun: Promise<void>): Promise<void> {
    const stop = new AbortController();
    await Promise.race([begun, pause(this.options.waitMs ?? WAIT_MS, stop.signal)]);
    stop.abort();
  }

  private async work(node: ChainNode, order: readonly Queue[]): Promise<void> {
    for (let next = this.claimNext(order); next.length > 0; next = this.claimNext(order))
      await this.request(node, next);
  }

  /** @returns the tokens for the next request */
  private claimNext(order: readonly Queue[]): readonly string[] {
    const nowMs = this.options.nowMs();
    if (nowMs < this.busyUntilMs) return [];
    for (const kind of order) {
      const claimed = this.claimFrom(kind, nowMs);
      if (claimed.length > 0) return claimed;
    }
    return [];
  }

  private claimFrom(kind: Queue, nowMs: number): readonly string[] {
    if (kind === 'failing') {
      for (const [token, { failures, dueAtMs }] of this.failing) {
        if (dueAtMs > nowMs) continue;
        this.failing.delete(token);
        this.requested.set(token, failures);
        return [token];
      }
      return [];
    }
    const claimed: string[] = [];
    for (const token of this[kind]) {
      claimed.push(token);
      this[kind].delete(token);
      this.requested.set(token, 0);
      if (claimed.length === (kind === 'queued' ? BATCH_MAX : 1)) break;
    }
    return claimed;
  }

  private async request(node: ChainNode, contracts: readonly string[]): Promise<void> {
    const results = await this.describeAll(node, contracts);
    for (const [index, result] of results.entries()) {
      const token = contracts[index]!;
      const failures = this.requested.get(token);
      // Another process has already published the token.
      if (failures === undefined) continue;
      this.requested.delete(token);
      if (!(result instanceof Error)) this.described.set(token, result);
      else if (result instanceof NodeFault && result.kind === 'busy') this.requeue(token, result);
      else if (contracts.length > 1) this.single.add(token);
      else this.postpone(token, failures);
    }
    const fault = results.find((result) => result instanceof Error);
    if (fault !== undefined) this.options.onFault(node, fault);
  }

  private async describeAll(node: ChainNode, contracts: readonly string[]): Promise<(TokenRecord | Error)[]> {
    try {
      return await describeTokens(node, this.options.chain, contracts);
    } catch (cause) {
      const fault = cause instanceof Error ? cause : new Error('tokens could not be described', { cause });
      return contracts.map(() => fault);
    }
  }

  /** Retries the token later, because the node currently refuses all requests. */
  private requeue(token: string, { retryAfterMs }: NodeFault): void {
    this.busyUntilMs = this.options.nowMs() + (retryAfterMs ?? BUSY_RETRY_MS);
    this.queued.add(token);
  }

  private postpone(token: string, failures: number): void {
    const waitMs = Math.min(RETRY_MIN_MS * 2 ** failures, RETRY_MAX_MS);
    this.failing.set(token, { failures: Math.min(failures + 1, 20), dueAtMs: this.options.nowMs() + waitMs });
  }
}
