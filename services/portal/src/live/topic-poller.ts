/** Reads the newest records of topics, in no consumer group, and samples them under load. */
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
          // An added partition is read from its start; a truncated log from its new end.
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
    const taken: StreamRecord[] = [];
    if (recordsMax === 0) return taken;
    let bytes = 0;
    for await (const record of log.read({ topic, partition, start: Math.max(start, end - recordsMax), end })) {
      bytes += (record.value?.length ?? 0) + (record.key?.length ?? 0);
      taken.push(record);
      if (bytes >= bytesMax) break;
    }
    return taken;
  }

  return {
    /** Starts at the current ends of the topics. @throws Error of the brokers */
    begin: async (topics: readonly string[]) => moveTo(await readBounds(topics)),
    /** New records of the topics, a sample when there are too many. @throws Error of the brokers */
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

/** How many waiting records of each partition are read: all if possible, else an even share, so that none starves. */
export function toQuotas(waiting: readonly number[], recordsMax: number): number[] {
  const quotas = waiting.map(() => 0);
  let left = recordsMax;
  // Fewest records first: what a partition does not need goes to the next ones.
  const order = waiting.map((_, index) => index).sort((a, b) => waiting[a]! - waiting[b]!);
  for (const [at, index] of order.entries()) {
    const even = Math.floor(left / (order.length - at));
    quotas[index] = Math.min(waiting[index]!, even);
    left -= quotas[index]!;
  }
  return quotas;
}
