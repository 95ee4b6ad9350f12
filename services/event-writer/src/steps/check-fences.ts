import type { FenceQuestion } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import type { RowHead } from '@playline/events';
import { RetryableFault } from '@playline/stream';

/** For a row of `events`: store it, drop it, or store it without an anonymous id that is not its owner's. */
export type FenceVerdict = 'keep' | 'drop' | 'blank';

/** Checks records against fences, however late they come. @throws RetryableFault while the fences are not loaded */
export interface CheckFences {
  ofRow(head: RowHead): FenceVerdict;
  isFenced(question: FenceQuestion): boolean;
}

/**
 * Creates the step that decides which parts of a record must not be stored. Only this step may give another result when
 * a block is written again, because fences are added meanwhile. That does no harm: it only removes rows and ids, and
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
    isFenced(question) {
      needLoaded();
      return fences.isFenced(question);
    },
  };
}
