import type { ErasureRequest } from '@playline/erasure';
import type { Logger } from '@playline/runtime';
import { TooManyLinksError } from './steps/resolve.ts';
import { toId } from './steps/settle.ts';

export interface RequestQueueParts {
  /** Most requests of one batch. */
  readonly batchRequestsMax: number;
  readonly isHealthy: () => Promise<boolean>;
  readonly onFault: (fault: unknown) => void;
  /** Ids (hexadecimal) of requests that are retried alone. */
  readonly aside: Set<string>;
  /** Number of batches that were begun, by all queues of the process: it grows while the stores work. */
  readonly begun: { batches: number };
  readonly logger: Logger;
}

interface Suspect {
  /** Requests of the smallest batch with this one that failed; `CLEAN` after an outage. */
  readonly failedIn: number;
  /** One for a failure alone, and one for each failure alone before which another batch was begun. */
  readonly blames: number;
  /** Batches that had been begun when it failed first, or last failed alone. */
  readonly begunBefore: number;
  readonly notBeforeMs: number;
}

const CLEAN = Number.POSITIVE_INFINITY;
const UNKNOWN: Suspect = { failedIn: CLEAN, blames: 0, begunBefore: Number.POSITIVE_INFINITY, notBeforeMs: 0 };
/** A request with so many is set aside. */
const BLAMES_MAX = 2;
/** Failed batches in a row after which single requests show whether anything can be begun. */
const FAILURES_TO_PROBE = 3;
const RETRY_MIN_MS = 10_000;
const RETRY_MAX_MS = 600_000;

/**
 * Chooses the requests of the next batch, and finds out whether a batch could not be begun because of one of its
 * requests or because of a store.
 *
 * Requests of a batch that failed are retried in halves, those of the largest batch first, so one request that cannot be
 * resolved fails two batches in a row at most. After three failures in a row single requests are tried, chosen at random.
 * One that fails alone is blamed if another batch was begun since it failed before; otherwise a store may be the reason.
 * So no request is blamed for an outage, and the first success after one restores batches of full size.
 */
export class RequestQueue {
  private readonly parts: RequestQueueParts;
  private readonly suspects = new Map<string, Suspect>();
  /** Failed batches since the last success, and the requests that failed alone. */
  private failures = 0;
  private readonly failedAlone = new Set<string>();
  private wasClean = false;

  constructor(parts: RequestQueueParts) {
    this.parts = parts;
  }

  /** @returns the requests of the next batch */
  take(free: readonly ErasureRequest[]): readonly ErasureRequest[] {
    const due = free.filter((request) => this.suspectOf(request).notBeforeMs <= performance.now());
    const clean = due.filter((request) => this.suspectOf(request).failedIn === CLEAN);
    const failed = due.filter((request) => this.suspectOf(request).failedIn !== CLEAN);
    // In turn, so that neither delays the other.
    const isClean = failed.length === 0 || (clean.length > 0 && !this.wasClean);
    const failedIn = failed.reduce((most, request) => Math.max(most, this.suspectOf(request).failedIn), 0);
    const group = isClean ? clean : failed.filter((request) => this.suspectOf(request).failedIn === failedIn);
    // At random: in a fixed order, requests that cannot be resolved could be the ones that are tried.
    if (this.failures >= FAILURES_TO_PROBE) return group.splice(Math.floor(Math.random() * group.length), 1);
    return group.slice(0, isClean ? this.parts.batchRequestsMax : Math.max(1, Math.floor(failedIn / 2)));
  }

  /**
   * Begins a batch of these requests.
   * @returns what `begin` returns; undefined when it failed and other requests can be tried at once
   * @throws the fault, while a store may be the reason
   */
  async attempt<B>(requests: readonly ErasureRequest[], begin: () => Promise<B | null>): Promise<B | null | undefined> {
    this.wasClean = this.suspectOf(requests[0]!).failedIn === CLEAN;
    try {
      const batch = await begin();
      for (const request of requests) {
        this.suspects.delete(toId(request));
        this.parts.aside.delete(toId(request));
      }
      // Without a batch nothing was stored, which says little about the stores.
      if (batch !== null) this.pass();
      return batch;
    } catch (error) {
      if (!(await this.parts.isHealthy())) throw error;
      if (requests.length === 1) this.failAlone(requests[0]!, error);
      else this.failTogether(requests, error);
      this.parts.onFault(error);
      return undefined;
    }
  }

  private suspectOf(request: ErasureRequest): Suspect {
    return this.suspects.get(toId(request)) ?? UNKNOWN;
  }

  private pass(): void {
    // Different requests failed alone: an outage is over, and its halves say nothing about their requests.
    if (this.failedAlone.size > 1)
      for (const [id, suspect] of this.suspects)
        if (suspect.blames === 0) this.suspects.delete(id);
        else if (suspect.blames < BLAMES_MAX) this.suspects.set(id, { ...suspect, failedIn: CLEAN });
    this.failures = 0;
    this.failedAlone.clear();
    this.parts.begun.batches++;
  }

  private failTogether(requests: readonly ErasureRequest[], error: unknown): void {
    this.failures++;
    for (const request of requests) {
      const known = this.suspectOf(request);
      const begunBefore = Math.min(known.begunBefore, this.parts.begun.batches);
      this.suspects.set(toId(request), { ...known, failedIn: requests.length, begunBefore });
    }
    const { logger } = this.parts;
    logger.warn({ error, requests: requests.length }, 'batch of erasures cannot be begun: retried in halves');
  }

  /** @throws the fault, unless the request is set aside */
  private failAlone(request: ErasureRequest, error: unknown): void {
    const { begun, aside, logger } = this.parts;
    const [id, known] = [toId(request), this.suspectOf(request)];
    // Single requests that are tried because of failures in a row may be the first ones that meet an outage.
    const isProof = begun.batches > known.begunBefore && (known.blames > 0 || this.failures < FAILURES_TO_PROBE);
    const isBlamed = isProof || error instanceof TooManyLinksError;
    const blames = known.blames + Number(isBlamed) + Number(known.blames === 0);
    const isAside = blames >= BLAMES_MAX;
    const retryMs = isAside ? Math.min(RETRY_MIN_MS * 2 ** (blames - BLAMES_MAX), RETRY_MAX_MS) : 0;
    const notBeforeMs = performance.now() + retryMs;
    this.suspects.set(id, { failedIn: 1, blames, begunBefore: begun.batches, notBeforeMs });
    if (known.blames < BLAMES_MAX) this.failures++;
    if (!isAside) {
      this.failedAlone.add(id);
      throw error;
    }
    aside.add(id);
    if (isBlamed) logger.error({ error, erasureId: id, retryMs }, 'erasure set aside: it cannot be resolved');
  }
}
