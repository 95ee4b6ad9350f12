import {
  createLedger as createOutcomes,
  createRun,
  type Ledger as Outcomes,
  type Run,
  sequenceOfId,
  toMessageId,
} from '../../simulate/run.ts';
import type { Attempt } from './post.ts';

/** What clients know of the messages of a trial: their outcomes, and every request. */
export interface Ledger {
  /** Its tag is in the id of every message of the trial. */
  readonly run: Run;
  readonly outcomes: Outcomes;
  /** Number of messages that were ever sent, and of those acknowledged by a 2xx. */
  readonly sent: number;
  readonly acknowledged: number;
  readonly attempts: readonly Attempt[];
  /** Takes the id of a message that will be sent. It may be stored even if no answer arrives. */
  newId(): string;
  /** Notes the answer to a batch of valid messages. */
  note(messageIds: readonly string[], attempt: Attempt): void;
}

/** All noted messages are valid, so a 2xx acknowledges the whole batch. */
const isAcknowledged = (status: number) => status >= 200 && status < 300;

export function createLedger(seed: number): Ledger {
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
    newId: () => {
      const sequence = outcomes.take();
      outcomes.set(sequence, 'unknown');
      return toMessageId(run, sequence);
    },
    note: (ids, attempt) => {
      attempts.push(attempt);
      if (!isAcknowledged(attempt.status)) return;
      const { accepted } = JSON.parse(attempt.text) as { accepted?: number };
      if (accepted !== ids.length) throw new Error(`${ids.length} valid messages were sent: ${attempt.text}`);
      for (const id of ids) outcomes.set(sequenceOfId(id), 'accepted');
    },
  };
}
