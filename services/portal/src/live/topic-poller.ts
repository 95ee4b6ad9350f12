/** Reads the newest records of topics without a consumer group, and samples them under load. */
import type { LogReader, StreamRecord } from '@playline/stream';
import type { LiveLimits } from './limits.ts';

interface Waiting {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export type TopicPoller = ReturnType<typeof createTopicPoller>;

export function createTopicPoller(log: Pick<LogReader, 'bounds' | 'read'>, limits: LiveLimits) {
  const offsets = new Map<string, number[]>();

  async function readBounds(topics: readonly string[]): Promise<Waiting[]> {
    const bounds = await Promise.all(
      topics.map(async (topic) => {
        const read = offsets.get(topic);
        return (await log.bounds(topic)).map(({ partition, start, end }) => {
          // New partitions are read from the start, truncated partitions from their new end.
          const next = read === undefined ? end : Math.min(end, Math.max(start, read[partition] ?? start));
          return { topic, partition, start: next, end };
        });
      }),
    );
    return bounds.flat();
  }

  function moveTo(waiting: readonly Waiting[]): void {
    for (const { topic, partition, end } of waiting) {
      const ends = offsets.get(topic) ?? [];
      ends[partition] = end;
      offsets.set(topic, ends);
    }
  }

  async function readNewest({ topic, partition, start, end }: Waiting, recordsMax: number, bytesMax: number) {
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
    begin: async (topics: readonly string[]) => moveTo(await readBounds(topics)),
    /** Returns new records, or a sample if there are too many. @throws any broker error */
    async poll(topics: readonly string[]) {
      const waiting = (await readBounds(topics)).filter(({ start, end }) => end > start);
      const counts = waiting.map(({ start, end }) => end - start);
      const quotas = toQuotas(counts, limits.recordsPerPollMax);
      const bytesMax = Math.floor(limits.bytesPerPollMax / Math.max(1, waiting.length));
      const read = await Promise.all(waiting.map((each, index) => readNewest(each, quotas[index]!, bytesMax)));
      moveTo(waiting);
      const records = read.flat().sort((a, b) => a.timestampMs - b.timestampMs);
      return { records, skipped: Math.max(0, counts.reduce((sum, count) => sum + count, 0) - records.length) };
    },
  };
}

/** Distributes `recordsMax` evenly among partitions. Unused quota goes to partitions with more waiting records. */
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
