import type { ErasureRequest } from '@playline/erasure';
import type { Logger } from '@playline/runtime';
import { toId } from './steps/settle.ts';

export interface RequestQueueParts {
  /** Most requests of one batch. */
  readonly batchRequestsMax: number;
  readonly isHealthy: () => Promise<boolean>;
  readonly onFault: (fault: unknown) => void;
  /** Ids (hexadecimal) of requests that are retried alone. */
  readonly aside: Set<string>;
  readonly logger: Logger;
}

/**
 * Chooses the requests of the next batch. Requests of a batch that could not be begun are tried again in halves, until
 * the one that cannot be resolved is alone. After three failures alone it is set aside and retried less and less often;
 * the others continue.
 */
export interface RequestQueue {
  /** @returns the requests of the next batch */
  take(free: readonly ErasureRequest[]): readonly ErasureRequest[];
  /**
   * Begins a batch of these requests.
   * @returns what `begin` returns; undefined when it failed because of one of the requests, which is logged
   * @throws the fault, while a store is away: then no request is blamed
   */
  attempt<B>(requests: readonly ErasureRequest[], begin: () => Promise<B>): Promise<B | undefined>;
}

interface Suspect {
  /** Failures of batches with this request, and those of them that had no other. */
  readonly failures: number;
  readonly failuresAlone: number;
  readonly notBeforeMs: number;
}

/** A store may fail and answer again before it is checked, so a request is blamed only when it fails alone so often. */
const FAILURES_ALONE = 3;
const RETRY_SOON_MS = 1_000;
const RETRY_MIN_MS = 10_000;
const RETRY_MAX_MS = 600_000;

function retryMsAfter(failuresAlone: number): number {
  if (failuresAlone < FAILURES_ALONE) return RETRY_SOON_MS;
  return Math.min(RETRY_MIN_MS * 2 ** (failuresAlone - FAILURES_ALONE), RETRY_MAX_MS);
}

export function createRequestQueue(parts: RequestQueueParts): RequestQueue {
  const { batchRequestsMax, isHealthy, onFault, aside, logger } = parts;
  const suspects = new Map<string, Suspect>();
  let wasClean = false;
  const sizeOf = (failures: number) => Math.max(1, Math.floor(batchRequestsMax / 2 ** failures));
  const forget = (request: ErasureRequest) => {
    suspects.delete(toId(request));
    aside.delete(toId(request));
  };
  return {
    take(free) {
      const clean = free.filter((request) => !suspects.has(toId(request)));
      const due = free.filter((request) => (suspects.get(toId(request))?.notBeforeMs ?? Infinity) <= performance.now());
      // In turn, so that neither delays the other.
      if (due.length === 0 || (clean.length > 0 && !wasClean)) return clean.slice(0, batchRequestsMax);
      const failuresOf = (request: ErasureRequest) => suspects.get(toId(request))!.failures;
      const fewest = due.reduce((least, request) => Math.min(least, failuresOf(request)), Infinity);
      return due.filter((request) => failuresOf(request) === fewest).slice(0, sizeOf(fewest));
    },
    async attempt(requests, begin) {
      wasClean = !suspects.has(toId(requests[0]!));
      try {
        const batch = await begin();
        for (const request of requests) forget(request);
        return batch;
      } catch (error) {
        if (!(await isHealthy())) throw error;
        onFault(error);
        const [first] = requests;
        const known = suspects.get(toId(first!)) ?? { failures: 0, failuresAlone: 0 };
        const isAlone = requests.length === 1;
        const [failures, failuresAlone] = [known.failures + 1, known.failuresAlone + Number(isAlone)];
        const isAside = failuresAlone >= FAILURES_ALONE;
        const retryMs = isAlone ? retryMsAfter(failuresAlone) : 0;
        const notBeforeMs = performance.now() + retryMs;
        for (const request of requests) suspects.set(toId(request), { failures, failuresAlone, notBeforeMs });
        if (isAside) aside.add(toId(first!));
        const erasureIds = requests.slice(0, 10).map(toId);
        if (isAside) logger.error({ error, erasureIds, retryMs }, 'erasure set aside: it cannot be resolved');
        else logger.warn({ error, requests: requests.length }, 'batch of erasures cannot be begun: retried in halves');
        return undefined;
      }
    },
  };
}
