/**
 * Leaves records of aborted transactions out of a fetched answer. kafkajs 2.2.4 gets this wrong when such transactions
 * overlap. It takes the list of them as ordered by first offset, but brokers order it by end, and it moves to the next
 * entry record by record. Then it delivers records of aborted transactions, and may drop records of the producer's next
 * transaction.
 */
import { isAbortMarker } from '../batch-head.ts';
import type { FetchedRecord } from './record-decoding.ts';

/** The members of a fetched partition that are used here. */
export interface FetchedTransactions {
  /** Aborted transactions with records in this answer, in any order. */
  abortedTransactions: { producerId: string; firstOffset: string }[] | null;
  /** Records of format 2; older formats have no transactions. */
  readonly messages: readonly unknown[];
}

/**
 * Makes aborted records look like markers, which kafkajs skips but counts as read. Empties the list of aborted
 * transactions, so that kafkajs has nothing to get wrong.
 */
export function leaveOutAborted(fetched: FetchedTransactions): void {
  const begun = (fetched.abortedTransactions ?? []).toSorted((a, b) => Number(a.firstOffset) - Number(b.firstOffset));
  fetched.abortedTransactions = [];
  if (begun.length === 0) return;
  const undone = new Set<string>();
  let next = 0;
  for (const record of fetched.messages as (FetchedRecord & { isControlRecord: boolean })[]) {
    while (next < begun.length && Number(begun[next]!.firstOffset) <= Number(record.offset))
      undone.add(begun[next++]!.producerId);
    const { producerId, inTransaction } = record.batchContext;
    if (!record.isControlRecord) record.isControlRecord = inTransaction && undone.has(producerId);
    else if (isAbortMarker(record.key)) undone.delete(producerId);
  }
}
