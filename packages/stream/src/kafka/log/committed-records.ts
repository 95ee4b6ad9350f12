import type { StreamRecord } from '../../ports.ts';
import { IS_CONTROL, IS_LOG_APPEND, IS_TRANSACTIONAL, isAbortMarker } from '../batch-head.ts';
import type { fetchV17 } from '../broker-client.ts';

type FetchAnswer = ReturnType<typeof fetchV17.parseResponse>;
type FetchedPartition = FetchAnswer['responses'][number]['partitions'][number];
type RecordBatch = NonNullable<FetchedPartition['records']>[number];

function toHeaders(pairs: RecordBatch['records'][number]['headers']): StreamRecord['headers'] {
  const entries = pairs.flatMap(([name, value]) => (name === null || value === null ? [] : [[String(name), value]]));
  return Object.fromEntries(entries);
}

function* toRecords(batch: RecordBatch, at: { topic: string; partition: number }): Generator<StreamRecord> {
  const isLogAppend = (batch.attributes & IS_LOG_APPEND) !== 0;
  for (const record of batch.records)
    yield {
      ...at,
      offset: Number(batch.firstOffset) + record.offsetDelta,
      timestampMs: Number(isLogAppend ? batch.maxTimestamp : batch.firstTimestamp + record.timestampDelta),
      key: record.key,
      value: record.value,
      headers: toHeaders(record.headers),
    };
}

/**
 * Returns the records of one answer without markers and without records of aborted transactions. The broker names an
 * aborted transaction by producer and first offset; it ends at its marker.
 * @returns the records, and the offset after the last batch; null when the answer has no batch
 */
export function readCommitted(
  topic: string,
  partition: Pick<FetchedPartition, 'partitionIndex' | 'abortedTransactions' | 'records'>,
): { records: StreamRecord[]; next: number | null } {
  const aborted = [...(partition.abortedTransactions ?? [])].sort((a, b) => Number(a.firstOffset - b.firstOffset));
  const undone = new Set<bigint>();
  const records: StreamRecord[] = [];
  let next: number | null = null;
  for (const batch of partition.records ?? []) {
    const last = batch.firstOffset + BigInt(batch.lastOffsetDelta);
    next = Number(last) + 1;
    while (aborted[0] !== undefined && aborted[0].firstOffset <= last) undone.add(aborted.shift()!.producerId);
    if ((batch.attributes & IS_CONTROL) !== 0) {
      if (isAbortMarker(batch.records[0]?.key)) undone.delete(batch.producerId);
      continue;
    }
    if ((batch.attributes & IS_TRANSACTIONAL) !== 0 && undone.has(batch.producerId)) continue;
    for (const each of toRecords(batch, { topic, partition: partition.partitionIndex })) records.push(each);
  }
  return { records, next };
}
