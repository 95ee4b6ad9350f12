import { type ErasureRecords, type FenceSet, openFenceSet } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';

export interface Fences extends Closable {
  readonly set: FenceSet;
  /** Why nothing can be written now; nothing while the set is fresh. */
  reasons(): Readonly<Record<string, string>>;
}

/** How often the same trouble is told. */
const TELL_AGAIN_MS = 60_000;

/** Opens the fences of erased people, and says what keeps them from being read: without them the writer stands. */
export function openFences(records: Pick<ErasureRecords, 'readFences'>, logger: Logger): Fences {
  let why = 'they are being read';
  let toldMs = Number.NEGATIVE_INFINITY;
  const onFault = (error: unknown) => {
    why = error instanceof Error ? error.message : String(error);
    if (performance.now() - toldMs < TELL_AGAIN_MS) return;
    toldMs = performance.now();
    logger.warn({ error }, 'the fences of erased people cannot be read: nothing is written five seconds from then on');
  };
  const set = openFenceSet({ records, onFault });
  return {
    set,
    reasons: (): Readonly<Record<string, string>> =>
      set.loaded ? {} : { fences: `the fences of erased people cannot be read: ${why}` },
    close: () => set.close(),
  };
}
