import type { Attempt } from './post.ts';

/** What clients know of the messages of a trial. */
export interface Ledger {
  /** Ids of all messages that were ever sent. */
  readonly sent: ReadonlySet<string>;
  /** Ids of messages acknowledged by a 2xx. */
  readonly acknowledged: ReadonlySet<string>;
  readonly attempts: readonly Attempt[];
  note(messageIds: readonly string[], attempt: Attempt): void;
  /** Call it before sending the ids. A message that was sent may be stored even if no answer arrives. */
  send(messageIds: readonly string[]): void;
}

/** All messages of the tests are valid, so a 2xx acknowledges the whole batch. */
const isAcknowledged = (status: number) => status >= 200 && status < 300;

export function createLedger(): Ledger {
  const sent = new Set<string>();
  const acknowledged = new Set<string>();
  const attempts: Attempt[] = [];
  return {
    sent,
    acknowledged,
    attempts,
    send: (ids) => {
      for (const id of ids) sent.add(id);
    },
    note: (ids, attempt) => {
      attempts.push(attempt);
      if (!isAcknowledged(attempt.status)) return;
      const { accepted } = JSON.parse(attempt.text) as { accepted?: number };
      if (accepted !== ids.length) throw new Error(`${ids.length} good messages were sent: ${attempt.text}`);
      for (const id of ids) acknowledged.add(id);
    },
  };
}
