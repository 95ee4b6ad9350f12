import { RetryableFault } from '@playline/stream';
import type { FencedQuestion, Fences } from '../fences.ts';

export type CheckFences = (row: FencedQuestion) => boolean;

/**
 * Creates the step that says whether a row must not be stored.
 * The one step that is not pure: it only takes rows away, and a block is written again under the same token.
 */
export function createCheckFences(fences: Fences): CheckFences {
  return (row) => {
    if (!fences.loaded) throw new RetryableFault('fences are not loaded');
    return fences.isFenced(row);
  };
}
