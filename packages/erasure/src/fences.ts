import type { FenceQuery } from '@playline/contracts';
import { inBatches, pause } from '@playline/stores';
import type { ErasureFence, ErasureRecords } from './records.ts';
import type { ErasureTarget } from './rows.ts';

/** The store of links and consents. `ErasureGuards` in `@playline/people` implements this interface. */
export interface FenceEnforcer {
  /** Sets fences and removes data that they should have refused. */
  enforce(cutoffs: readonly ErasureTarget[]): Promise<{ readonly links: number; readonly consents: number }>;
}

/**
 * Writes fences to ClickHouse, from which lost Redis fences are restored, and then to Redis. Idempotent.
 * @throws StoreFault, or a guard fault
 */
export async function raiseFences(
  records: Pick<ErasureRecords, 'putFences'>,
  guard: { fence(cutoffs: readonly ErasureTarget[]): Promise<void> },
  fences: readonly ErasureFence[],
): Promise<void> {
  await records.putFences(fences);
  await guard.fence(fences);
}

/** Blocks Redis for a few milliseconds. */
const FENCES_PER_CALL = 1_000;

/**
 * Restores fences in Redis and removes data that they should have refused.
 * @returns the numbers of removed links and consents by environment
 * @throws a source or store fault, after which the call may be retried
 */
export async function enforceFences(
  store: FenceEnforcer,
  fences: AsyncIterable<ErasureTarget>,
): Promise<ReadonlyMap<string, { links: number; consents: number }>> {
  const removed = new Map<string, { links: number; consents: number }>();
  for await (const batch of inBatches(fences, FENCES_PER_CALL))
    for (const [environmentId, cutoffs] of Map.groupBy(batch, (fence) => fence.environmentId)) {
      const { links, consents } = await store.enforce(cutoffs);
      const sum = removed.get(environmentId) ?? { links: 0, consents: 0 };
      removed.set(environmentId, { links: sum.links + links, consents: sum.consents + consents });
    }
  return removed;
}

/**
 * Reads the latest cut-off of every fenced identity.
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

/** An in-memory copy of all fences, for services that write rows. */
export interface FenceSet {
  /** Whether all fences older than `FENCES_KNOWN_WITHIN_MS` are known. While false, no rows may be written. */
  readonly loaded: boolean;
  /** A fast filter for the key at `start`: false for almost every key without a fence. */
  mayHold(source: Buffer, start: number): boolean;
  /** Whether the identity has a fence and the event time or receipt time is not later than the cut-off. */
  isFenced(query: FenceQuery): boolean;
}

/**
 * The eraser waits this long between writing a fence and reading the log's end offsets. Writers therefore know the
 * fence before they process any later record, such as a message from a slow gateway.
 */
export const FENCES_KNOWN_WITHIN_MS = 5_000;
/** Allows several attempts within `FENCES_KNOWN_WITHIN_MS`. A query takes a millisecond. */
const REFRESH_MS = 1_000;
/** Interval while no keys are checked and the last refresh succeeded. The next check triggers a refresh. */
const IDLE_REFRESH_MS = 4_000;
/** A query that returns no row for this long is aborted. */
const STALLED_MS = 2_000;
/**
 * All fences are reread at this interval because a table restored from a backup may reuse part names. Reading 100,000
 * fences takes a third of a second.
 */
const REREAD_ALL_MS = 600_000;

/**
 * Opens a fence set that refreshes in the background. Check `loaded` before use.
 * @param options.onFault called after every failed refresh; refreshes continue
 */
export function openFenceSet(options: {
  readonly records: Pick<ErasureRecords, 'readFences'>;
  readonly onFault: (fault: unknown) => void;
}): FenceSet & { close(): Promise<void> } {
  const { records, onFault } = options;
  const fences = new FenceIndex();
  const stop = new AbortController();
  const refresh = createRefresh(records, fences, stop.signal);
  let refreshedMs = Number.NEGATIVE_INFINITY;
  let isInUse = false;
  let idle = new AbortController();
  const keepFresh = async () => {
    while (!stop.signal.aborted) {
      let hasFailed = false;
      try {
        refreshedMs = await refresh();
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
      return performance.now() - refreshedMs <= FENCES_KNOWN_WITHIN_MS;
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

/** Creates a function that adds new fences and returns the `performance.now()` time of its query. */
function createRefresh(records: Pick<ErasureRecords, 'readFences'>, fences: FenceIndex, stop: AbortSignal) {
  let knownParts: ReadonlySet<string> = new Set();
  let reloadedMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<number> => {
    // Read before the query because its result may lack fences written while the query runs.
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
    // Updated only after a complete read because an aborted read may have missed fences in a part.
    if (skipped.size === 0) reloadedMs = requestedMs;
    knownParts = seen;
    return requestedMs;
  };
}

/**
 * Reads all current fences once, to check rows that were already written.
 * @throws StoreFault
 */
export async function readFenceSet(
  records: Pick<ErasureRecords, 'readFences'>,
): Promise<Pick<FenceSet, 'mayHold' | 'isFenced'>> {
  const fences = new FenceIndex();
  for await (const fence of records.readFences()) fences.add(fence);
  return fences;
}

/** Aborts a query if the set is closed or the query stalls. */
function openWatchdog(stop: AbortSignal) {
  const query = new AbortController();
  let activeMs = performance.now();
  const end = () => query.abort(new Error('the fence set was closed'));
  const check = () => {
    if (performance.now() - activeMs > STALLED_MS) query.abort(new Error(`no fence received for ${STALLED_MS} ms`));
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

/**
 * Number of key bits in the filter. The filter takes half a megabyte and, with 10,000 fences, has a false-positive rate
 * of 1 in 400.
 */
const FILTER_BITS = 22;

/** Cut-offs by environment and key, with a filter that rejects almost all keys without a fence. */
class FenceIndex {
  readonly #filter = new Uint8Array(2 ** (FILTER_BITS - 3));
  readonly #cutoffs = new Map<string, Map<string, number>>();

  add({ environmentId, key, cutoffMs }: ErasureTarget): void {
    const bit = bitOf(key, 0);
    this.#filter[bit >> 3]! |= 1 << (bit & 7);
    const cutoffs = this.#cutoffs.get(environmentId) ?? new Map<string, number>();
    this.#cutoffs.set(environmentId, cutoffs);
    const name = toName(key);
    cutoffs.set(name, Math.max(cutoffMs, cutoffs.get(name) ?? cutoffMs));
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

/** A latin1 string takes half the memory of a hexadecimal string. */
const toName = (key: Buffer): string => key.toString('latin1');

/** The first `FILTER_BITS` bits of a key. */
function bitOf(source: Buffer, start: number): number {
  return (source[start]! << 14) | (source[start + 1]! << 6) | (source[start + 2]! >> 2);
}
