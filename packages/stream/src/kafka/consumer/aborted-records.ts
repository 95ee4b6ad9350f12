/**
 * Leaves records of aborted transactions out of a fetched answer. kafkajs 2.2.4 does it wrongly where such transactions
 * overlap: it takes the list of them as ordered by first offset, while brokers order it by end, and it enters one of them
 * a record. Records that were undone are then handed over, and records of the producer's next transaction may be dropped.
 */
import type { FetchedRecord } from './record-decoding.ts';

/** What is used of one partition of an answer. */
export interface FetchedTransactions {
  /** Those that lie in the answer in part; in any order. */
  abortedTransactions: { producerId: string; firstOffset: string }[] | null;
  /** Records of our format; older ones know no transactions. */
  readonly messages: readonly unknown[];
}

/** Second half of a marker's key: what became of the transaction. */
const ABORT = 0;
const isAbortMarker = ({ key }: FetchedRecord) => key !== null && key.length >= 4 && key.readInt16BE(2) === ABORT;

/**
 * Makes what was undone look like markers, which kafkajs passes over and counts as read, and leaves it no list to go wrong
 * by.
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
    else if (isAbortMarker(record)) undone.delete(producerId);
  }
}
