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
 * The eraser waits this long after it has written a fence. Then it takes the end of the log, and waits until writers
 * have committed past it. A record behind that end came later: whoever judges it knows every fence that is older than
 * this, and so this one. Without the wait a message that a gateway was slow to publish would be stored again after the
 * delete.
 */
export const FENCES_KNOWN_WITHIN_MS = 5_000;
/** Several tries within that time: a question of a millisecond. */
const REFRESH_MS = 1_000;
/** While nothing is judged and nothing has failed, so that a process at rest, and the store, are at rest: two tries within that time. */
const REST_REFRESH_MS = 2_000;
/** Of a question under which nothing comes any more: its connection was cut, and the next one works. */
const STALLED_MS = 3_000;
/**
 * Now and then all fences are read again: a table that was restored from a copy may give the name of an old part to a
 * new one, whose fences would be taken for known. A hundred thousand take a third of a second.
 */
const WHOLE_AGAIN_MS = 600_000;

export interface FenceSetOptions {
  readonly records: Pick<ErasureRecords, 'readFences'>;
  /** Told of every refresh that failed; the next one follows by itself. */
  readonly onFault: (fault: unknown) => void;
}

/** Opens the set and keeps it fresh. Resolves at once, whether or not the store answers: `loaded` tells. */
export function openFenceSet({ records, onFault }: FenceSetOptions): FenceSet & { close(): Promise<void> } {
  const fences = new Fences();
  const stop = new AbortController();
  const known = createKnownParts();
  let freshMs = Number.NEGATIVE_INFINITY;
  let isInUse = false;
  const refresh = async () => {
    // Of the moment before the question: what is written while it is answered may be missing.
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
    // Only here is anything known: a reading that was cut short has told some fences of a piece and not others.
    known.end(reading);
    freshMs = askedMs;
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      let hasFailed = false;
      await refresh().catch((fault: unknown) => {
        hasFailed = true;
        if (!stop.signal.aborted) onFault(fault);
      });
      const pauseMs = isInUse || hasFailed ? REFRESH_MS : REST_REFRESH_MS;
      isInUse = false;
      await pause(pauseMs, stop.signal);
    }
  };
  const running = run();
  return {
    get loaded() {
      return performance.now() - freshMs <= FENCES_KNOWN_WITHIN_MS;
    },
    mayHold: (source, start) => {
      isInUse = true;
      return fences.mayHold(source, start);
    },
    isFenced: (question) => fences.isFenced(question),
    async close() {
      stop.abort();
      await running;
    },
  };
}

/** The fences of this moment, read once: for whoever looks at what was written. @throws RowsFault */
export async function readFenceSet(
  records: Pick<ErasureRecords, 'readFences'>,
): Promise<Pick<FenceSet, 'mayHold' | 'isFenced'>> {
  const fences = new Fences();
  for await (const fence of records.readFences()) fences.add(fence);
  return fences;
}

interface Reading {
  readonly askedMs: number;
  /** Pieces that need not be read; none when all is read again. */
  readonly known: ReadonlySet<string>;
  /** Pieces that are known when it has come to its end. */
  readonly seen: Set<string>;
}

/** Keeps which pieces of the table have been read to their end. */
function createKnownParts() {
  let known: ReadonlySet<string> = new Set();
  let wholeMs = Number.NEGATIVE_INFINITY;
  return {
    begin(askedMs: number): Reading {
      const isWhole = askedMs - wholeMs > WHOLE_AGAIN_MS;
      return { askedMs, known: isWhole ? new Set() : known, seen: new Set(isWhole ? [] : known) };
    },
    end(reading: Reading): void {
      if (reading.known.size === 0) wholeMs = reading.askedMs;
      known = reading.seen;
    },
  };
}

/** Watches over one question: it ends with the set, or when nothing has come for a while. */
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

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
    if (stop.aborted) end();
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
