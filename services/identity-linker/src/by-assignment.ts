import type { BatchPosition } from '@playline/stream';

/** Keeps a value for each assignment of a partition. A partition that is assigned again gets a new one. */
export interface ByAssignment<T> {
  of(position: BatchPosition): T;
  /** Values of the partitions that this process owns. */
  all(): readonly T[];
}

/** Creates the store of values. The key is the signal, because each assignment has its own. */
export function createByAssignment<T>(open: (position: BatchPosition) => T): ByAssignment<T> {
  const assignments = new Map<AbortSignal, T>();
  return {
    of(position) {
      const { signal } = position;
      const known = assignments.get(signal) ?? open(position);
      if (!signal.aborted && !assignments.has(signal)) {
        assignments.set(signal, known);
        signal.addEventListener('abort', () => assignments.delete(signal), { once: true });
      }
      return known;
    },
    all: () => [...assignments.values()],
  };
}
