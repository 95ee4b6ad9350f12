import type { ErasureReceipt, ErasureRecords } from '../records.ts';

/** Offsets that a partition holds: from `start` to before `end`. A reader of the log has it. */
export interface PartitionBounds {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export interface ExpiredLogsOptions {
  readonly records: Pick<ErasureRecords, 'readOpenReceipts' | 'putReceipts'>;
  /** Gives no partition of a topic that is not there. */
  readonly log: { bounds(topic: string): Promise<readonly PartitionBounds[]> };
  /** What the broker's name of a topic has in front of the one in `logEnds`. */
  readonly topicPrefix: string;
  readonly wallClockMs: () => number;
}

export interface ExpiredLogs {
  /** Receipts that say from now on that the log holds nothing. */
  readonly noted: number;
  /** Receipts whose log is not known to have expired. */
  readonly waiting: number;
}

/**
 * Notes in receipts that the log holds nothing of their erasure any more, when both is so:
 * - the time has passed when whatever stood in it has expired (`logExpiresAt`). What came late stands behind the noted
 *   ends: a message of before the cut-off that a gateway was slow to publish, a link that waited for another erasure.
 * - every partition begins at or behind the end that it had when the fences stood. A log that is gone, or ends before that
 *   end, was made anew or has lost its end; which of the two cannot be told, so of it the time alone tells.
 * @throws StoreFault, or a fault of the log
 */
export async function noteExpiredLogs({
  records,
  log,
  topicPrefix,
  wallClockMs,
}: ExpiredLogsOptions): Promise<ExpiredLogs> {
  const receipts = (await records.readOpenReceipts()).filter(({ logExpiredAt }) => logExpiredAt === null);
  const logExpiredAt = wallClockMs();
  const due = receipts.filter(({ logExpiresAt }) => logExpiredAt >= logExpiresAt);
  const logs = new Map<string, ReadonlyMap<number, PartitionBounds>>();
  for (const topic of new Set(due.flatMap(endsOf).map((each) => each.topic))) {
    const bounds = await log.bounds(topicPrefix + topic);
    logs.set(topic, new Map(bounds.map((each) => [each.partition, each])));
  }
  const expired = due.filter((receipt) =>
    endsOf(receipt).every(({ topic, partition, end }) => {
      const bounds = logs.get(topic)?.get(partition);
      return bounds === undefined || bounds.end < end || bounds.start >= end;
    }),
  );
  await records.putReceipts(expired.map((receipt) => ({ ...receipt, logExpiredAt })));
  return { noted: expired.length, waiting: receipts.length - expired.length };
}

function endsOf({ logEnds }: ErasureReceipt): { topic: string; partition: number; end: number }[] {
  return Object.entries(logEnds).map(([place, end]) => {
    const slash = place.lastIndexOf('/');
    return { topic: place.slice(0, slash), partition: Number(place.slice(slash + 1)), end };
  });
}
