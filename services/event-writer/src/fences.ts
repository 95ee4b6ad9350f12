import type { FenceQuery } from '@playline/contracts';
import { type ErasureRecords, type FenceSet, openFenceSet } from '@playline/erasure';
import type { RowHead } from '@playline/events';
import type { Logger } from '@playline/runtime';
import { RetryableFault } from '@playline/stream';

const LOG_INTERVAL_MS = 60_000;
const UNREADABLE = 'the fences of erased people cannot be read';

/** Opens the fences of erased people and reports why they cannot be read. Without them nothing is written. */
export function openFences(records: Pick<ErasureRecords, 'readFences'>, logger: Logger) {
  let why = 'the first reading is not finished';
  let loggedMs = Number.NEGATIVE_INFINITY;
  const onFault = (error: unknown) => {
    why = error instanceof Error ? error.message : String(error);
    if (performance.now() - loggedMs < LOG_INTERVAL_MS) return;
    loggedMs = performance.now();
    logger.warn({ error }, `${UNREADABLE}: nothing is written from five seconds after the last reading`);
  };
  const set = openFenceSet({ records, onFault });
  /** Why nothing can be written now; empty while the set is fresh. */
  const reasons = (): Readonly<Record<string, string>> => (set.loaded ? {} : { fences: `${UNREADABLE}: ${why}` });
  return { set, reasons, close: () => set.close() };
}

/** For a row of `events`: store it, drop it, or store it without an anonymous id that is not its owner's. */
type FenceVerdict = 'keep' | 'drop' | 'blank';

/** Checks records against fences, however late they come. @throws RetryableFault while the fences are not loaded */
export interface CheckFences {
  ofRow(head: RowHead): FenceVerdict;
  isFenced(query: FenceQuery): boolean;
}

/**
 * Creates the step that decides which parts of a record must not be stored. Only this step may give another result when
 * a block is written again, because fences are added between attempts. That does no harm: it only removes rows and ids, and
 * the block keeps its token.
 * @param onBlanked called for each event that is stored without the anonymous id of an erased person
 */
export function createCheckFences(fences: FenceSet, onBlanked: () => void): CheckFences {
  const needLoaded = () => {
    if (!fences.loaded) throw new RetryableFault('the fences of erased people are not loaded');
  };
  return {
    ofRow(head) {
      needLoaded();
      if (!head.someKey(fences.mayHold)) return 'keep';
      const { environmentId, eventTimeMs, receivedAtMs } = head;
      const isErased = (key: Buffer) => fences.isFenced({ environmentId, key, eventTimeMs, receivedAtMs });
      if (head.someOwnKey(isErased)) return 'drop';
      if (!isErased(head.anonymousKey)) return 'keep';
      onBlanked();
      return 'blank';
    },
    isFenced(query) {
      needLoaded();
      return fences.isFenced(query);
    },
  };
}
