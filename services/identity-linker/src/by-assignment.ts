import type { BatchPosition } from '@playline/stream';

/** Something kept for each assignment of a partition. A partition that is assigned here again begins anew. */
export interface ByAssignment<T> {
  of(position: BatchPosition): T;
  /** Of the partitions that are ours. */
  all(): readonly T[];
}

/** Each assignment has a signal of its own, so the signal is the key. */
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
