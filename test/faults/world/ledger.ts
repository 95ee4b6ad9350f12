import type { Attempt } from './post.ts';

/** What clients know of the messages of one trial: this is what they were promised. */
export interface Ledger {
  /** Ids of every message that was ever sent. */
  readonly sent: ReadonlySet<string>;
  /** Ids of messages that a 2xx has acknowledged. */
  readonly acknowledged: ReadonlySet<string>;
  readonly attempts: readonly Attempt[];
  note(messageIds: readonly string[], attempt: Attempt): void;
  /** Called before the ids go out: an id that was sent may be stored, whatever is heard of it. */
  send(messageIds: readonly string[]): void;
}

/** A batch is good as a whole: what the tests send is valid. */
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
