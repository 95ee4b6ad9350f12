import { explainConnection, type StoreName } from './explain-fault.ts';

/** Where sentences are logged; a service's logger fits. */
export interface FaultLog {
  warn(fields: object, message: string): void;
}

/** What a service knows about connections that fail. */
export interface ConnectionFaults {
  /** Returns the listener for all clients of one store: call it with every fault. */
  of(store: StoreName): (fault: unknown) => void;
  /**
   * Wraps a check of a store. As soon as the check succeeds, earlier faults of that store are no longer given as
   * reasons.
   */
  forgetting(store: StoreName, holds: () => Promise<boolean>): () => Promise<boolean>;
  /** For each store why it cannot be used, if that was reported within the last half minute. */
  reasons(): Readonly<Record<string, string>>;
}

/** A refused client retries for hours. An operator needs the sentence when looking at the log, not for each attempt. */
const REPEAT_MS = 60_000;
/** Longer than the longest wait between two attempts, so that the reason stays until the store can be used again. */
const FRESH_MS = 30_000;

interface Known {
  readonly sentence: string;
  heardMs: number;
  loggedMs: number;
  /** Faults since the sentence was logged. */
  faults: number;
}

/**
 * Collects the faults of all clients. A refusal (TLS or login) is logged as a sentence, at most once a minute for each
 * store and sentence; a store that is only away appears in `reasons` alone, because its clients log that themselves.
 * @param nowMs a clock that never goes back
 */
export function createConnectionFaults(log: FaultLog, nowMs: () => number = () => performance.now()): ConnectionFaults {
  const stores = new Map<StoreName, Map<string, Known>>();
  const hear = (store: StoreName, fault: unknown) => {
    const { sentence, isRefusal } = explainConnection(store, fault);
    const sentences = stores.get(store) ?? new Map<string, Known>();
    stores.set(store, sentences);
    const heardMs = nowMs();
    const known = sentences.get(sentence) ?? { sentence, heardMs, loggedMs: Number.NEGATIVE_INFINITY, faults: 0 };
    sentences.set(sentence, known);
    known.heardMs = heardMs;
    known.faults++;
    if (!isRefusal || heardMs - known.loggedMs < REPEAT_MS) return;
    log.warn({ store, faults: known.faults }, sentence);
    known.loggedMs = heardMs;
    known.faults = 0;
  };
  return {
    of: (store) => (fault) => hear(store, fault),
    forgetting: (store, holds) => async () => {
      const isUsable = await holds();
      // The times of the log stay: a store that comes and goes is logged no more often.
      if (isUsable) for (const known of stores.get(store)?.values() ?? []) known.heardMs = Number.NEGATIVE_INFINITY;
      return isUsable;
    },
    reasons() {
      const found: Record<string, string> = {};
      for (const [store, sentences] of stores) {
        const last = [...sentences.values()].sort((a, b) => b.heardMs - a.heardMs)[0];
        if (last !== undefined && nowMs() - last.heardMs <= FRESH_MS) found[store] = last.sentence;
      }
      return found;
    },
  };
}
