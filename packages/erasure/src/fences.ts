import type { FenceQuery } from '@playline/contracts';
import { inBatches, pause } from '@playline/stores';
import type { ErasureFence, ErasureRecords } from './records.ts';
import type { ErasureTarget } from './rows.ts';

/** The store of links and consents; `ErasureGuards` of `@playline/people` fits. */
export interface FenceEnforcer {
  /** Sets fences, and removes what they should have refused. */
  enforce(cutoffs: readonly ErasureTarget[]): Promise<{ readonly links: number; readonly consents: number }>;
}

/**
 * Sets fences in ClickHouse, from which lost fences of Redis are restored, then in Redis. May be repeated.
 * @throws StoreFault, or a fault of the guard
 */
export async function raiseFences(
  records: Pick<ErasureRecords, 'putFences'>,
  guard: { fence(cutoffs: readonly ErasureTarget[]): Promise<void> },
  fences: readonly ErasureFence[],
): Promise<void> {
  await records.putFences(fences);
  await guard.fence(fences);
}

/** Takes Redis some milliseconds. */
const ENFORCED_A_CALL = 1_000;

/**
 * Sets fences in Redis again, and removes there what they should have refused. Streams the fences.
 * @returns what was removed, by environment
 * @throws a fault of the source or of the store: then it may be called again
 */
export async function enforceFences(
  store: FenceEnforcer,
  fences: AsyncIterable<ErasureTarget>,
): Promise<ReadonlyMap<string, { links: number; consents: number }>> {
  const removed = new Map<string, { links: number; consents: number }>();
  for await (const batch of inBatches(fences, ENFORCED_A_CALL))
    for (const [environmentId, own] of Map.groupBy(batch, (fence) => fence.environmentId)) {
      const { links, consents } = await store.enforce(own);
      const sum = removed.get(environmentId) ?? { links: 0, consents: 0 };
      removed.set(environmentId, { links: sum.links + links, consents: sum.consents + consents });
    }
  return removed;
}

/**
 * The latest cut-off of every fenced identity. Unmerged fences come several times.
 * @throws StoreFault
 */
export async function readCutoffs(records: Pick<ErasureRecords, 'readFences'>): Promise<ErasureTarget[]> {
  const latest = new Map<string, ErasureTarget>();
  for await (const { environmentId, key, cutoffMs } of records.readFences()) {
    const name = `${environmentId} ${toName(key)}`;
    if ((latest.get(name)?.cutoffMs ?? Number.NEGATIVE_INFINITY) < cutoffMs)
      latest.set(name, { environmentId, key, cutoffMs });
  }
  return [...latest.values()];
}

/** All fences in memory, for services that write rows. */
export interface FenceSet {
  /** Whether every fence older than `FENCES_KNOWN_WITHIN_MS` is known. While false, nothing may be written. */
  readonly loaded: boolean;
  /** Takes nanoseconds, and is false for almost every key without a fence. The key begins at `start`. */
  mayHold(source: Buffer, start: number): boolean;
  /** Whether it happened, or was received, not later than the cut-off of the identity's fence. */
  isFenced(query: FenceQuery): boolean;
}

/**
 * The eraser waits this long after writing a fence before it reads the end of the log. So writers know the fence when
 * they process a record after that end, such as a message that a gateway was slow to publish.
 */
export const FENCES_KNOWN_WITHIN_MS = 5_000;
/** Allows several attempts within that time. One query takes a millisecond. */
const REFRESH_MS = 1_000;
/** While no key is checked and no refresh has failed. The first check ends this pause. */
const IDLE_REFRESH_MS = 4_000;
/** A query without rows for this long has lost its connection, and is aborted. */
const STALLED_MS = 2_000;
/**
 * After this time all fences are read again, because a table restored from a backup may reuse the name of a part. A
 * hundred thousand fences take a third of a second.
 */
const REREAD_ALL_MS = 600_000;

/**
 * Opens the set and refreshes it in the background. Resolves before the first refresh: check `loaded`.
 * @param options.onFault called for every failed refresh; the next one follows
 */
export function openFenceSet(options: {
  readonly records: Pick<ErasureRecords, 'readFences'>;
  readonly onFault: (fault: unknown) => void;
}): FenceSet & { close(): Promise<void> } {
  const { records, onFault } = options;
  const fences = new FenceIndex();
  const stop = new AbortController();
  const refresh = createRefresh(records, fences, stop.signal);
  let freshMs = Number.NEGATIVE_INFINITY;
  let isInUse = false;
  let idle = new AbortController();
  const keepFresh = async () => {
    while (!stop.signal.aborted) {
      let hasFailed = false;
      try {
        freshMs = await refresh();
      } catch (fault) {
        hasFailed = true;
        if (!stop.signal.aborted) onFault(fault);
      }
      const isIdle = !isInUse && !hasFailed;
      isInUse = false;
      idle = new AbortController();
      if (isIdle) await pause(IDLE_REFRESH_MS, AbortSignal.any([stop.signal, idle.signal]));
      else await pause(REFRESH_MS, stop.signal);
    }
  };
  const markUsed = () => {
    if (!isInUse) idle.abort();
    isInUse = true;
  };
  const running = keepFresh();
  return {
    get loaded() {
      return performance.now() - freshMs <= FENCES_KNOWN_WITHIN_MS;
    },
    mayHold: (source, start) => {
      markUsed();
      return fences.mayHold(source, start);
    },
    isFenced: (query) => {
      markUsed();
      return fences.isFenced(query);
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

/** @returns a function that adds new fences, and returns the time of its request by `performance.now()` */
function createRefresh(records: Pick<ErasureRecords, 'readFences'>, fences: FenceIndex, stop: AbortSignal) {
  let knownParts: ReadonlySet<string> = new Set();
  let reloadedMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<number> => {
    // Before the query, whose result may lack a fence that is written while it runs.
    const requestedMs = performance.now();
    const skipped = requestedMs - reloadedMs > REREAD_ALL_MS ? new Set<string>() : knownParts;
    const seen = new Set(skipped);
    const watchdog = openWatchdog(stop);
    try {
      for await (const fence of records.readFences({ knownParts: skipped, signal: watchdog.signal })) {
        watchdog.reset();
        fences.add(fence);
        seen.add(fence.part);
      }
    } finally {
      watchdog.close();
    }
    // Only after a complete reading: an aborted one has only some fences of a part.
    if (skipped.size === 0) reloadedMs = requestedMs;
    knownParts = seen;
    return requestedMs;
  };
}

/**
 * All fences of this moment, read once: for checks of what was written.
 * @throws StoreFault
 */
export async function readFenceSet(
  records: Pick<ErasureRecords, 'readFences'>,
): Promise<Pick<FenceSet, 'mayHold' | 'isFenced'>> {
  const fences = new FenceIndex();
  for await (const fence of records.readFences()) fences.add(fence);
  return fences;
}

/** Aborts a query when the set is closed, or when no row has arrived for a while. */
function openWatchdog(stop: AbortSignal) {
  const query = new AbortController();
  let activeMs = performance.now();
  const end = () => query.abort(new Error('the set of fences was closed'));
  const check = () => {
    if (performance.now() - activeMs > STALLED_MS) query.abort(new Error(`no fence arrived for ${STALLED_MS} ms`));
  };
  const timer = setInterval(check, STALLED_MS / 3);
  stop.addEventListener('abort', end);
  return {
    signal: query.signal,
    reset: () => {
      activeMs = performance.now();
    },
    close: () => {
      clearInterval(timer);
      stop.removeEventListener('abort', end);
    },
  };
}

/** Bits of a key in the filter: half a megabyte, and with 10,000 fences one key in four hundred passes by mistake. */
const FILTER_BITS = 22;

/** Cut-offs by environment and key, behind a filter that rejects almost every other key. */
class FenceIndex {
  readonly #filter = new Uint8Array(2 ** (FILTER_BITS - 3));
  readonly #cutoffs = new Map<string, Map<string, number>>();

  add({ environmentId, key, cutoffMs }: ErasureTarget): void {
    const bit = bitOf(key, 0);
    this.#filter[bit >> 3]! |= 1 << (bit & 7);
    const own = this.#cutoffs.get(environmentId) ?? new Map<string, number>();
    this.#cutoffs.set(environmentId, own);
    const name = toName(key);
    own.set(name, Math.max(cutoffMs, own.get(name) ?? cutoffMs));
  }

  mayHold(source: Buffer, start: number): boolean {
    const bit = bitOf(source, start);
    return (this.#filter[bit >> 3]! & (1 << (bit & 7))) !== 0;
  }

  isFenced({ environmentId, key, eventTimeMs, receivedAtMs }: FenceQuery): boolean {
    const cutoffMs = this.#cutoffs.get(environmentId)?.get(toName(key));
    return cutoffMs !== undefined && Math.min(eventTimeMs, receivedAtMs) <= cutoffMs;
  }
}

/** Sixteen one-byte characters take half the memory of hexadecimal text. */
const toName = (key: Buffer): string => key.toString('latin1');

/** The first bits of a key as a number. */
function bitOf(source: Buffer, start: number): number {
  return (source[start]! << 14) | (source[start + 1]! << 6) | (source[start + 2]! >> 2);
}
