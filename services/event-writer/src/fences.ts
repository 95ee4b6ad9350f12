import { type ErasureRecords, type FenceSet, openFenceSet } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';

export interface Fences extends Closable {
  readonly set: FenceSet;
  /** Why nothing can be written now; empty while the set is fresh. */
  reasons(): Readonly<Record<string, string>>;
}

/** At most one log line in this time reports that fences cannot be read. */
const TELL_AGAIN_MS = 60_000;

/** Opens the fences of erased people and reports why they cannot be read. Without them nothing is written. */
export function openFences(records: Pick<ErasureRecords, 'readFences'>, logger: Logger): Fences {
  let why = 'they are being read';
  let toldMs = Number.NEGATIVE_INFINITY;
  const onFault = (error: unknown) => {
    why = error instanceof Error ? error.message : String(error);
    if (performance.now() - toldMs < TELL_AGAIN_MS) return;
    toldMs = performance.now();
    logger.warn(
      { error },
      'the fences of erased people cannot be read: from five seconds after the last reading nothing is written',
    );
  };
  const set = openFenceSet({ records, onFault });
  return {
    set,
    reasons: (): Readonly<Record<string, string>> =>
      set.loaded ? {} : { fences: `the fences of erased people cannot be read: ${why}` },
    close: () => set.close(),
  };
}
