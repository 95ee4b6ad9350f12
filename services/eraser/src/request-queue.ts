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

/**
 * Chooses the requests of the next batch, and finds out whether a batch could not be begun because of one of its
 * requests or because of a store.
 *
 * Requests of a batch that failed are retried in halves, those of the largest batch first, so one request that cannot be
 * resolved fails two batches in a row at most. After three failures in a row single requests are tried, chosen at random.
 * One that fails alone is blamed if another batch was begun since it failed before; otherwise a store may be the reason.
 * So no request is blamed for an outage, and the first success after one restores batches of full size.
 */
export interface RequestQueue {
  /** @returns the requests of the next batch */
  take(free: readonly ErasureRequest[]): readonly ErasureRequest[];
  /**
   * Begins a batch of these requests.
   * @returns what `begin` returns; undefined when it failed and other requests can be tried at once
   * @throws the fault, while a store may be the reason
   */
  attempt<B>(requests: readonly ErasureRequest[], begin: () => Promise<B | null>): Promise<B | null | undefined>;
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

export function createRequestQueue(parts: RequestQueueParts): RequestQueue {
  const { batchRequestsMax, isHealthy, onFault, aside, begun, logger } = parts;
  const suspects = new Map<string, Suspect>();
  const suspectOf = (request: ErasureRequest) => suspects.get(toId(request)) ?? UNKNOWN;
  /** Failed batches since the last success, and the requests that failed alone. */
  let failures = 0;
  const failedAlone = new Set<string>();
  let wasClean = false;

  const pass = () => {
    // Different requests failed alone: an outage is over, and its halves say nothing about their requests.
    if (failedAlone.size > 1)
      for (const [id, suspect] of suspects)
        if (suspect.blames === 0) suspects.delete(id);
        else if (suspect.blames < BLAMES_MAX) suspects.set(id, { ...suspect, failedIn: CLEAN });
    failures = 0;
    failedAlone.clear();
    begun.batches++;
  };

  const failAlone = (request: ErasureRequest, error: unknown) => {
    const [id, known] = [toId(request), suspectOf(request)];
    // Single requests that are tried because of failures in a row may be the first ones that meet an outage.
    const isProof = begun.batches > known.begunBefore && (known.blames > 0 || failures < FAILURES_TO_PROBE);
    const isBlamed = isProof || error instanceof TooManyLinksError;
    const blames = known.blames + Number(isBlamed) + Number(known.blames === 0);
    const isAside = blames >= BLAMES_MAX;
    const retryMs = isAside ? Math.min(RETRY_MIN_MS * 2 ** (blames - BLAMES_MAX), RETRY_MAX_MS) : 0;
    suspects.set(id, { failedIn: 1, blames, begunBefore: begun.batches, notBeforeMs: performance.now() + retryMs });
    if (known.blames < BLAMES_MAX) failures++;
    if (!isAside) {
      failedAlone.add(id);
      throw error;
    }
    aside.add(id);
    if (isBlamed) logger.error({ error, erasureId: id, retryMs }, 'erasure set aside: it cannot be resolved');
  };

  return {
    take(free) {
      const due = free.filter((request) => suspectOf(request).notBeforeMs <= performance.now());
      const clean = due.filter((request) => suspectOf(request).failedIn === CLEAN);
      const failed = due.filter((request) => suspectOf(request).failedIn !== CLEAN);
      // In turn, so that neither delays the other.
      const isClean = failed.length === 0 || (clean.length > 0 && !wasClean);
      const failedIn = failed.reduce((most, request) => Math.max(most, suspectOf(request).failedIn), 0);
      const group = isClean ? clean : failed.filter((request) => suspectOf(request).failedIn === failedIn);
      // At random: in a fixed order, requests that cannot be resolved could be the ones that are tried.
      if (failures >= FAILURES_TO_PROBE) return group.splice(Math.floor(Math.random() * group.length), 1);
      return group.slice(0, isClean ? batchRequestsMax : Math.max(1, Math.floor(failedIn / 2)));
    },
    async attempt(requests, begin) {
      wasClean = suspectOf(requests[0]!).failedIn === CLEAN;
      try {
        const batch = await begin();
        for (const request of requests) {
          suspects.delete(toId(request));
          aside.delete(toId(request));
        }
        // Without a batch nothing was stored, which says little about the stores.
        if (batch !== null) pass();
        return batch;
      } catch (error) {
        if (!(await isHealthy())) throw error;
        if (requests.length === 1) failAlone(requests[0]!, error);
        else {
          failures++;
          for (const request of requests) {
            const known = suspectOf(request);
            const begunBefore = Math.min(known.begunBefore, begun.batches);
            suspects.set(toId(request), { ...known, failedIn: requests.length, begunBefore });
          }
          logger.warn({ error, requests: requests.length }, 'batch of erasures cannot be begun: retried in halves');
        }
        onFault(error);
        return undefined;
      }
    },
  };
}
