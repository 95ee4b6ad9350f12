import type { BatchPosition } from '@playline/stream';

/** What is kept for each assignment of a partition: one that comes back begins with nothing. */
export interface ByAssignment<T> {
  of(position: BatchPosition): T;
  /** Of the partitions that are ours. */
  all(): readonly T[];
}

/** An assignment's signal stands for it. */
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
