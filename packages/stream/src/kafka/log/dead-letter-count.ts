/** Counts open dead letters, which are neither replayed nor dropped nor deleted by retention. */
import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { LogReader } from '../../log.ts';
import { deadLetterTopicOf, SETTLED_OFFSET } from '../../partitions/dead-letters.ts';
import type { StreamRecord } from '../../ports.ts';
import { atMostEvery } from '../at-most-every.ts';
import type { BrokerTarget } from '../security.ts';
import { openLogReader } from './open-log-reader.ts';

export interface DeadLetterCountOptions extends BrokerTarget {
  /** The topics that the service reads and whose dead letters are counted. */
  readonly topics: readonly string[];
  readonly metrics: Metrics;
}

/** Registers the metric for open dead letters. Connects to the brokers on the first scrape. */
export function openDeadLetterCount({ topics, metrics, ...kafka }: DeadLetterCountOptions): { close(): Promise<void> } {
  const log = openLogReader({ ...kafka, clientId: 'dead-letters' });
  reportDeadLetterCounts(createDeadLetterCounter(log, topics), metrics);
  return { close: () => log.close() };
}

/** Minimum interval between reads. Dead letters are rare, and a read takes two requests per topic. */
const REFRESH_INTERVAL_MS = 10_000;
/** Maximum wait during a scrape. Reading continues, and the next scrape reports the result. */
const COLLECT_MAX_MS = 1_000;
/** Maximum number of counted dead letters per topic. Their offsets take up tens of megabytes of memory. */
const OPEN_MAX = 1_000_000;

interface CountedPartition {
  next: number;
  readonly open: Set<number>;
}

const settledOffsetOf = ({ headers }: StreamRecord): number | null =>
  headers[SETTLED_OFFSET] === undefined ? null : Number(String(headers[SETTLED_OFFSET]));

const countOpen = (partitions: ReadonlyMap<number, CountedPartition>): number =>
  [...partitions.values()].reduce((count, { open }) => count + open.size, 0);

/** @param topics source topics, not dead-letter topics */
export function createDeadLetterCounter(log: LogReader, topics: readonly string[], openMax = OPEN_MAX) {
  const countedTopics = new Map<string, Map<number, CountedPartition>>();
  const readNew = async (topic: string, partitions: Map<number, CountedPartition>) => {
    const deadTopic = deadLetterTopicOf(topic);
    for (const { partition, start, end } of await log.bounds(deadTopic)) {
      const counted = partitions.get(partition) ?? { next: start, open: new Set<number>() };
      partitions.set(partition, counted);
      // The topic was recreated, so the counted offsets belong to other dead letters.
      if (end < counted.next) {
        counted.open.clear();
        counted.next = start;
      }
      for (const offset of counted.open) if (offset < start) counted.open.delete(offset);
      for await (const record of log.read({ topic: deadTopic, partition, start: Math.max(start, counted.next), end })) {
        const settled = settledOffsetOf(record);
        if (settled !== null) counted.open.delete(settled);
        else if (countOpen(partitions) < openMax) counted.open.add(record.offset);
        counted.next = record.offset + 1;
      }
      counted.next = Math.max(counted.next, end);
    }
    countedTopics.set(topic, partitions);
  };
  return {
    /** Reads new records. @throws the log's error; the last counts are retained */
    async refresh(): Promise<void> {
      for (const topic of topics) await readNew(topic, countedTopics.get(topic) ?? new Map());
    },
    /** Returns the counts by source topic. Topics that were never read are missing. */
    counts: () => new Map([...countedTopics].map(([topic, partitions]) => [topic, countOpen(partitions)])),
  };
}

/**
 * Reports the counts. All processes of a service report the same count, and the last count if the log is unavailable.
 */
export function reportDeadLetterCounts(counter: ReturnType<typeof createDeadLetterCounter>, metrics: Metrics) {
  const read = atMostEvery(REFRESH_INTERVAL_MS, () => counter.refresh());
  const help = 'Dead letters that are neither replayed nor dropped, at most one million per topic';
  metrics.collectedGauge('playline_stream_open_dead_letters', help, {
    labelNames: ['topic'],
    async collect(gauge) {
      await waitAtMost(COLLECT_MAX_MS, read(), () => {});
      gauge.reset();
      for (const [topic, count] of counter.counts()) gauge.set({ topic }, count);
    },
  });
}
