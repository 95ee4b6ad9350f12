import type { FenceQuery } from '@playline/contracts';
import { inBatches, pause } from '@playline/stores';
import type { ErasureFence, ErasureRecords } from './records.ts';
import type { ErasureTarget } from './rows.ts';

/** The store whose scripts refuse facts and consents; `ErasureGuards` of `@playline/people` fits. */
export interface FenceGuard {
  fence(cutoffs: readonly ErasureTarget[]): Promise<void>;
}

/** The same store, with the removal of what a fence should have kept out. */
export interface FenceEnforcer {
  enforce(cutoffs: readonly ErasureTarget[]): Promise<{ readonly links: number; readonly consents: number }>;
}

/**
 * Fences of erased people, in both stores that refuse something: one for writers of rows, one for links and consents.
 */
export interface Fences {
  /**
   * Sets fences; a later fence of an identity stays. Safe to repeat.
   *
   * The column store comes first. If Redis is lost, its fences are restored from there, so a fence in Redis alone would
   * be lost with it.
   * @throws StoreFault, or a fault of the guard: then it may be called again
   */
  raise(fences: readonly ErasureFence[]): Promise<void>;
}

export function createFences(records: Pick<ErasureRecords, 'putFences'>, guard: FenceGuard): Fences {
  return {
    async raise(fences) {
      await records.putFences(fences);
      await guard.fence(fences);
    },
  };
}

/** Of one call: some milliseconds of Redis. */
const ENFORCED_A_CALL = 1_000;

/**
 * Sets fences in the store of links and consents again, and removes there what they should have kept out. Streams the
 * fences, so their number does not matter.
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
 * Cut-offs of everybody who is fenced, each identity once. Until a merge has folded them, the column store returns a
 * fence that was raised again several times; the latest cut-off counts.
 * @throws StoreFault
 */
export async function readCutoffs(records: Pick<ErasureRecords, 'readFences'>): Promise<ErasureTarget[]> {
  const latest = new Map<string, ErasureTarget>();
  for await (const { environmentId, key, cutoffMs } of records.readFences()) {
    const name = `${environmentId} ${key.toString('latin1')}`;
    if ((latest.get(name)?.cutoffMs ?? Number.NEGATIVE_INFINITY) < cutoffMs)
      latest.set(name, { environmentId, key, cutoffMs });
  }
  return [...latest.values()];
}

/** All fences, in memory: for services that write what may be about a person. */
export interface FenceSet {
  /**
   * Whether every fence is known that was written more than `FENCES_KNOWN_WITHIN_MS` ago. While it is false, nothing
   * may be written.
   */
  readonly loaded: boolean;
  /** Quick check in nanoseconds: false for almost every key that is not fenced. The key begins at `start`. */
  mayHold(source: Buffer, start: number): boolean;
  /** Whether it happened, or was received, not later than the cut-off of a fence of this identity. */
  isFenced(question: FenceQuery): boolean;
}

/**
 * After writing a fence the eraser waits this long. Then it reads the end of the log and waits until writers have
 * committed past it. A record after that end came later than the fence: the writer that judges it knows every fence
 * older than this time, and so this one too. Without the wait, a message that a gateway was slow to publish would be
 * stored again after the delete.
 */
export const FENCES_KNOWN_WITHIN_MS = 5_000;
/** Allows several tries within that time. One query takes a millisecond. */
const REFRESH_MS = 1_000;
/**
 * While nothing is judged and nothing has failed, so that an idle process and the store have little to do. The first key
 * that is judged ends this pause. A try that fails is followed by others each second.
 */
const REST_REFRESH_MS = 4_000;
/** A query that brings nothing for this long has lost its connection. It is ended, and the next one works. */
const STALLED_MS = 2_000;
/**
 * From time to time all fences are read again. If a table was restored from a backup, a new part may have the name of
 * an old one, and its fences would wrongly count as known. A hundred thousand fences take a third of a second.
 */
const REREAD_ALL_MS = 600_000;

export interface FenceSetOptions {
  readonly records: Pick<ErasureRecords, 'readFences'>;
  /** Called with the fault of every failed refresh; the next refresh follows by itself. */
  readonly onFault: (fault: unknown) => void;
}

/** Opens the set and keeps it fresh. Resolves at once, whether or not the store answers: `loaded` tells. */
export function openFenceSet({ records, onFault }: FenceSetOptions): FenceSet & { close(): Promise<void> } {
  const fences = new FenceIndex();
  const stop = new AbortController();
  const known = createKnownParts();
  let freshMs = Number.NEGATIVE_INFINITY;
  const rest = createRest(stop.signal);
  const refresh = async () => {
    const askedMs = performance.now();
    const reading = known.begin(askedMs);
    const watch = openWatch(stop.signal);
    try {
      for await (const fence of records.readFences({ knownParts: reading.known, signal: watch.signal })) {
        watch.alive();
        fences.add(fence);
        reading.seen.add(fence.part);
      }
    } finally {
      watch.close();
    }
    known.end(reading);
    freshMs = askedMs;
  };
  const keepFresh = async () => {
    while (!stop.signal.aborted) {
      const fault = await refresh().then(() => null, toFault);
      if (fault !== null && !stop.signal.aborted) onFault(fault.cause);
      await rest.pause(fault !== null);
    }
  };
  const running = keepFresh();
  return {
    get loaded() {
      return performance.now() - freshMs <= FENCES_KNOWN_WITHIN_MS;
    },
    mayHold: (source, start) => {
      rest.use();
      return fences.mayHold(source, start);
    },
    isFenced: (question) => {
      rest.use();
      return fences.isFenced(question);
    },
    async close() {
      stop.abort();
      await running;
    },
  };
}

/** What a refresh threw, which may be any value. */
const toFault = (cause: unknown) => ({ cause });

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

interface Reading {
  /** Before the query: a fence written while it runs may be missing from its answer. */
  readonly requestedMs: number;
  /** Parts that need not be read again; empty when all are read. */
  readonly known: ReadonlySet<string>;
  /** Parts that count as known once this reading has reached its end. */
  readonly seen: Set<string>;
}

/** Remembers which parts of the table have been read to their end. */
function createKnownParts() {
  let known: ReadonlySet<string> = new Set();
  let wholeMs = Number.NEGATIVE_INFINITY;
  return {
    begin(askedMs: number): Reading {
      const isWhole = askedMs - wholeMs > REREAD_ALL_MS;
      return { requestedMs: askedMs, known: isWhole ? new Set() : known, seen: new Set(isWhole ? [] : known) };
    },
    /** Only a reading that came to its end makes parts known: one that was cut short has only some fences of a part. */
    end(reading: Reading): void {
      if (reading.known.size === 0) wholeMs = reading.requestedMs;
      known = reading.seen;
    },
  };
}

/** Watches one query. Ends it when the set is closed, or when nothing has come for a while. */
function openWatch(stop: AbortSignal) {
  const question = new AbortController();
  let aliveMs = performance.now();
  const end = () => question.abort(new Error('the fences are not asked for any more'));
  const look = () => {
    if (performance.now() - aliveMs > STALLED_MS) question.abort(new Error(`no fence was told for ${STALLED_MS} ms`));
  };
  const timer = setInterval(look, STALLED_MS / 3);
  stop.addEventListener('abort', end);
  return {
    signal: question.signal,
    alive: () => {
      aliveMs = performance.now();
    },
    close: () => {
      clearInterval(timer);
      stop.removeEventListener('abort', end);
    },
  };
}

/** The pauses between refreshes: long ones only while nothing is judged and nothing has failed. */
function createRest(stop: AbortSignal): { use(): void; pause(hasFailed: boolean): Promise<void> } {
  let isInUse = false;
  /** Ends the pause of a set at rest. */
  let endRest: (() => void) | null = null;
  return {
    use: () => {
      if (!isInUse) endRest?.();
      isInUse = true;
    },
    pause: async (hasFailed) => {
      const isAtRest = !isInUse && !hasFailed;
      isInUse = false;
      const between = openPause(isAtRest ? REST_REFRESH_MS : REFRESH_MS, stop);
      endRest = isAtRest ? between.end : null;
      await between.ended;
    },
  };
}

/** A pause that ends by itself, by `end` or by the signal. */
function openPause(ms: number, stop: AbortSignal): { readonly ended: Promise<void>; end(): void } {
  const early = new AbortController();
  return { ended: pause(ms, AbortSignal.any([stop, early.signal])), end: () => early.abort() };
}

/**
 * How many bits of a key the filter uses: it takes half a megabyte, and with 10,000 fences one key in four hundred
 * passes by mistake.
 */
const FILTER_BITS = 22;

/** Cut-offs by environment and key, behind a filter: almost no row is about a fenced person. */
class FenceIndex {
  readonly #filter = new Uint8Array(2 ** (FILTER_BITS - 3));
  readonly #cutoffs = new Map<string, Map<string, number>>();

  add({ environmentId, key, cutoffMs }: { environmentId: string; key: Buffer; cutoffMs: number }): void {
    const bit = bitOf(key, 0);
    this.#filter[bit >> 3]! |= 1 << (bit & 7);
    const own = this.#cutoffs.get(environmentId) ?? new Map<string, number>();
    this.#cutoffs.set(environmentId, own);
    const name = nameOf(key);
    own.set(name, Math.max(cutoffMs, own.get(name) ?? cutoffMs));
  }

  mayHold(source: Buffer, start: number): boolean {
    const bit = bitOf(source, start);
    return (this.#filter[bit >> 3]! & (1 << (bit & 7))) !== 0;
  }

  isFenced({ environmentId, key, eventTimeMs, receivedAtMs }: FenceQuery): boolean {
    const cutoffMs = this.#cutoffs.get(environmentId)?.get(nameOf(key));
    return cutoffMs !== undefined && Math.min(eventTimeMs, receivedAtMs) <= cutoffMs;
  }
}

/** Sixteen bytes as sixteen one-byte characters: half the memory of hexadecimal text. */
const nameOf = (key: Buffer): string => key.toString('latin1');

/** The first bits of a key as a number. */
function bitOf(source: Buffer, start: number): number {
  return (source[start]! << 14) | (source[start + 1]! << 6) | (source[start + 2]! >> 2);
}
