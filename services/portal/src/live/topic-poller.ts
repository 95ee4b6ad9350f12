/** Polls the newest records of topics without a consumer group. Samples the records under load. */
import type { LogReader, StreamRecord } from '@playline/stream';
import type { LiveLimits } from './limits.ts';

interface UnreadRange {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export type TopicPoller = ReturnType<typeof createTopicPoller>;

export function createTopicPoller(log: Pick<LogReader, 'bounds' | 'read'>, limits: LiveLimits) {
  const offsets = new Map<string, number[]>();

  async function readBounds(topics: readonly string[]): Promise<UnreadRange[]> {
    const bounds = await Promise.all(
      topics.map(async (topic) => {
        const read = offsets.get(topic);
        return (await log.bounds(topic)).map(({ partition, start, end }) => {
          // Reads new partitions from their start, and truncated partitions from their new end.
          const next = read === undefined ? end : Math.min(end, Math.max(start, read[partition] ?? start));
          return { topic, partition, start: next, end };
        });
      }),
    );
    return bounds.flat();
  }

  function storeOffsets(ranges: readonly UnreadRange[]): void {
    for (const { topic, partition, end } of ranges) {
      const ends = offsets.get(topic) ?? [];
      ends[partition] = end;
      offsets.set(topic, ends);
    }
  }

  async function readNewest({ topic, partition, start, end }: UnreadRange, recordsMax: number, bytesMax: number) {
    const records: StreamRecord[] = [];
    if (recordsMax === 0) return records;
    let bytes = 0;
    for await (const record of log.read({ topic, partition, start: Math.max(start, end - recordsMax), end })) {
      bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0);
      records.push(record);
      if (bytes >= bytesMax) break;
    }
    return records;
  }

  return {
    /** Starts at the current end offsets. @throws any broker error */
    begin: async (topics: readonly string[]) => storeOffsets(await readBounds(topics)),
    /** Returns new records, or a sample if there are too many. @throws any broker error */
    async poll(topics: readonly string[]) {
      const unread = (await readBounds(topics)).filter(({ start, end }) => end > start);
      const counts = unread.map(({ start, end }) => end - start);
      const quotas = toQuotas(counts, limits.recordsPerPollMax);
      const bytesMax = Math.floor(limits.bytesPerPollMax / Math.max(1, unread.length));
      const read = await Promise.all(unread.map((each, index) => readNewest(each, quotas[index]!, bytesMax)));
      storeOffsets(unread);
      const records = read.flat().sort((a, b) => a.timestampMs - b.timestampMs);
      return { records, skipped: Math.max(0, counts.reduce((sum, count) => sum + count, 0) - records.length) };
    },
  };
}

/** Divides `recordsMax` evenly among partitions. Busier partitions get the quota that other partitions do not need. */
export function toQuotas(waiting: readonly number[], recordsMax: number): number[] {
  const quotas = waiting.map(() => 0);
  let remaining = recordsMax;
  const order = waiting.map((_, index) => index).sort((a, b) => waiting[a]! - waiting[b]!);
  for (const [position, index] of order.entries()) {
    const equalQuota = Math.floor(remaining / (order.length - position));
    quotas[index] = Math.min(waiting[index]!, equalQuota);
    remaining -= quotas[index]!;
  }
  return quotas;
}
