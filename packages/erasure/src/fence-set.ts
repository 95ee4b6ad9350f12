import type { FenceQuestion } from '@playline/contracts';
import type { ErasureRecords } from './records.ts';

/** All fences that stand, in memory: for whoever writes what may be about a person. */
export interface FenceSet {
  /** Whether every fence is known that was written more than `FENCES_KNOWN_WITHIN_MS` ago. Nothing may be written while not. */
  readonly loaded: boolean;
  /** False for almost every key that is not fenced, in nanoseconds; the key begins at `start`. */
  mayHold(source: Buffer, start: number): boolean;
  /** Whether it happened or was received up to the cut-off of a fence of this identity. */
  isFenced(question: FenceQuestion): boolean;
}

/**
 * The eraser takes the end of the log so long after it has written a fence, and waits until writers have committed past
 * it. A record behind that end came later, and whoever judges it knows fences at most this old, so this one too. Without
 * it a message that a gateway was slow to publish would come back behind the delete.
 */
export const FENCES_KNOWN_WITHIN_MS = 5_000;
/** Several tries within that time: a question of a millisecond. */
const REFRESH_MS = 1_000;
/** Of a question without an answer. */
const STALLED_MS = 10_000;
/** A fence that was being written while others were read becomes visible later, with an earlier time. */
const OVERLAP_MS = 60_000;

export interface FenceSetOptions {
  readonly records: Pick<ErasureRecords, 'readFences'>;
  /** Told of every refresh that failed; the next one follows by itself. */
  readonly onFault: (fault: unknown) => void;
}

/** Opens the set and keeps it fresh. Resolves at once, whether or not the store answers: `loaded` tells. */
export function openFenceSet({ records, onFault }: FenceSetOptions): FenceSet & { close(): Promise<void> } {
  const fences = new Fences();
  const stop = new AbortController();
  let freshMs = Number.NEGATIVE_INFINITY;
  let seenMs: number | undefined;
  const refresh = async () => {
    // Of the moment before the question: what is written while it is answered may be missing.
    const askedMs = performance.now();
    const since = seenMs === undefined ? undefined : seenMs - OVERLAP_MS;
    for await (const fence of withoutStalls(records.readFences(since))) {
      fences.add(fence);
      seenMs = Math.max(seenMs ?? fence.fencedAtMs, fence.fencedAtMs);
    }
    freshMs = askedMs;
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      await refresh().catch(onFault);
      await pause(REFRESH_MS, stop.signal);
    }
  };
  const running = run();
  return {
    get loaded() {
      return performance.now() - freshMs <= FENCES_KNOWN_WITHIN_MS;
    },
    mayHold: (source, start) => fences.mayHold(source, start),
    isFenced: (question) => fences.isFenced(question),
    async close() {
      stop.abort();
      await running;
    },
  };
}

/** @throws Error when nothing comes for a while: a connection that was cut says nothing, and the next one works */
async function* withoutStalls<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  for (;;) {
    const stall = new AbortController();
    const stalled = pause(STALLED_MS, stall.signal).then(() => null);
    const next = await Promise.race([iterator.next(), stalled]).finally(() => stall.abort());
    if (next === null) {
      void iterator.return?.().catch(() => {});
      throw new Error(`no fence was told for ${STALLED_MS} ms`);
    }
    if (next.done === true) return;
    yield next.value;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Bits of a key that the filter goes by: half a megabyte, and one key in four hundred looks like one of 10,000 fenced. */
const FILTER_BITS = 22;

/** Cut-offs by environment and key, and a filter in front of them: almost every row is about nobody who is fenced. */
class Fences {
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

  isFenced({ environmentId, key, eventTimeMs, receivedAtMs }: FenceQuestion): boolean {
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
