import { createLedger as createOutcomes, createRun, sequenceOfId, toMessageId } from '../../simulate/run.ts';
import type { Attempt } from './post.ts';

/** What clients know of the messages of a trial: their outcomes, and every request. */
export type Ledger = ReturnType<typeof createLedger>;

export function createLedger(seed: number) {
  const [run, outcomes] = [createRun(seed, Date.now()), createOutcomes()];
  const attempts: Attempt[] = [];
  return {
    run,
    outcomes,
    attempts,
    get sent() {
      return outcomes.taken - outcomes.count('rejected');
    },
    get acknowledged() {
      return outcomes.count('accepted');
    },
    /** Takes the id of a message that will be sent. It may be stored even if no answer arrives. */
    newId: () => {
      const sequence = outcomes.take();
      outcomes.set(sequence, 'unknown');
      return toMessageId(run, sequence);
    },
    note: (ids: readonly string[], attempt: Attempt) => {
      attempts.push(attempt);
      if (attempt.status < 200 || attempt.status >= 300) return;
      const { accepted } = JSON.parse(attempt.text) as { accepted?: number };
      if (accepted !== ids.length) throw new Error(`${ids.length} valid messages were sent: ${attempt.text}`);
      for (const id of ids) outcomes.set(sequenceOfId(id), 'accepted');
    },
  };
}
