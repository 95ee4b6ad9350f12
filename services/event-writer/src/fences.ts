import type { FenceQuery } from '@playline/contracts';
import { type ErasureRecords, type FenceSet, openFenceSet } from '@playline/erasure';
import type { RowHead } from '@playline/events';
import type { Logger } from '@playline/runtime';
import { RetryableFault } from '@playline/stream';

const LOG_INTERVAL_MS = 60_000;
const UNREADABLE = 'cannot read the fences of erased people';

/** Opens the fences of erased people and reports read errors. Without fences, no personal data is written. */
export function openFences(records: Pick<ErasureRecords, 'readFences'>, logger: Logger) {
  let reason = 'the first read has not finished';
  let loggedMs = Number.NEGATIVE_INFINITY;
  const onFault = (error: unknown) => {
    reason = error instanceof Error ? error.message : String(error);
    if (performance.now() - loggedMs < LOG_INTERVAL_MS) return;
    loggedMs = performance.now();
    logger.warn({ error }, `${UNREADABLE}; writing stops five seconds after the last successful read`);
  };
  const set = openFenceSet({ records, onFault });
  /** Returns why no personal data can be written; empty while the fences are up to date. */
  const reasons = (): Readonly<Record<string, string>> => (set.loaded ? {} : { fences: `${UNREADABLE}: ${reason}` });
  return { set, reasons, close: () => set.close() };
}

/** Result for a row of `events`: keep the row, drop it, or store it without another person's anonymous id. */
type FenceVerdict = 'keep' | 'drop' | 'blank';

/** Checks records of any age against fences. @throws RetryableFault if the fences are not loaded */
export interface CheckFences {
  checkRow(head: RowHead): FenceVerdict;
  isFenced(query: FenceQuery): boolean;
}

/**
 * Creates the step that decides which parts of a record must not be stored. Unlike other steps, it may return a
 * different result when a block is written again, because fences are added between attempts. This is harmless: a
 * later check can only remove more rows and ids, and the block keeps its token.
 * @param onBlanked called for each event that is stored without the anonymous id of an erased person
 */
export function createCheckFences(fences: FenceSet, onBlanked: () => void): CheckFences {
  const assertLoaded = () => {
    if (!fences.loaded) throw new RetryableFault('the fences of erased people are not loaded');
  };
  return {
    checkRow(head) {
      assertLoaded();
      if (!head.someKey(fences.mayHold)) return 'keep';
      const { environmentId, eventTimeMs, receivedAtMs } = head;
      const isErased = (key: Buffer) => fences.isFenced({ environmentId, key, eventTimeMs, receivedAtMs });
      if (head.someOwnKey(isErased)) return 'drop';
      if (!isErased(head.anonymousKey)) return 'keep';
      onBlanked();
      return 'blank';
    },
    isFenced(query) {
      assertLoaded();
      return fences.isFenced(query);
    },
  };
}
