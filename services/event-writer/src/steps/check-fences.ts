import type { FenceQuestion } from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import type { RowHead } from '@playline/events';
import { RetryableFault } from '@playline/stream';

/** What becomes of a row of `events`: as it is; not stored; or stored without the anonymous id that it merely carries. */
export type FenceVerdict = 'keep' | 'drop' | 'blank';

/** What an erasure keeps out, however late it comes. @throws RetryableFault while the fences are not loaded */
export interface CheckFences {
  ofRow(head: RowHead): FenceVerdict;
  isFenced(question: FenceQuestion): boolean;
}

/**
 * Creates the step that says what of a record must not be stored. The only step whose answer may differ when a block is
 * written again, since fences are added meanwhile. That does no harm: it only ever takes rows and ids away, and the block
 * keeps its token.
 * @param onBlanked told of each event that is stored without the anonymous id of somebody erased, which it carried
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
