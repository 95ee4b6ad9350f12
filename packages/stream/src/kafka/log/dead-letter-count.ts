import type { Metrics } from '@playline/runtime';
import { waitAtMost } from '@playline/stores';
import type { LogReader } from '../../log.ts';
import { deadLetterTopicOf, SETTLED_OFFSET } from '../../partitions/dead-letters.ts';
import type { StreamRecord } from '../../ports.ts';
import type { BrokerTarget } from '../security.ts';
import { openLogReader } from './open-log-reader.ts';

export interface DeadLetterCountOptions extends BrokerTarget {
  /** Topics that the service reads; their dead letters are counted. */
  readonly topics: readonly string[];
  readonly metrics: Metrics;
}

/** Reports `playline_stream_open_dead_letters{topic}` when metrics are read; connects the first time. */
export function openDeadLetterCount({ topics, metrics, ...kafka }: DeadLetterCountOptions): { close(): Promise<void> } {
  const log = openLogReader({ ...kafka, clientId: 'dead-letters' });
  reportDeadLetterCounts(createDeadLetterCounter(log, topics), metrics);
  return { close: () => log.close() };
}

/** Dead letters are few and seldom change. Reading what is new takes two questions for each topic. */
const REFRESH_EVERY_MS = 10_000;
/** Most time that a scrape of metrics waits. Reading goes on, and the next scrape shows the result. */
const COLLECT_MAX_MS = 1_000;
/**
 * Most open letters counted of one topic, which takes some tens of megabytes. More are an outage, whatever the exact
 * number.
 */
const OPEN_MAX = 1_000_000;

const HELP = `Dead letters that are neither replayed nor dropped; those past ${OPEN_MAX} of a topic are not counted`;

interface CountedPartition {
  next: number;
  readonly open: Set<number>;
}

/** Open dead letters of topics: those that were neither replayed nor dropped, and that retention has not taken. */
interface DeadLetterCounter {
  /**
   * Reads what is new.
   * @throws Error of the log: then the last known counts stay
   */
  refresh(): Promise<void>;
  /** By topic the letters came from; topics that were never read are absent. */
  counts(): ReadonlyMap<string, number>;
}

function settledOffsetOf({ headers }: StreamRecord): number | null {
  const text = headers[SETTLED_OFFSET];
  return text === undefined ? null : Number(String(text));
}

function openIn(partitions: ReadonlyMap<number, CountedPartition>): number {
  let count = 0;
  for (const { open } of partitions.values()) count += open.size;
  return count;
}

/**
 * @param topics whose dead letters are counted, not the dead-letter topics themselves
 * @param openMax letters of one topic that are counted at most
 */
export function createDeadLetterCounter(
  log: LogReader,
  topics: readonly string[],
  openMax = OPEN_MAX,
): DeadLetterCounter {
  const known = new Map<string, Map<number, CountedPartition>>();
  const readOn = async (topic: string, partitions: Map<number, CountedPartition>) => {
    const deadTopic = deadLetterTopicOf(topic);
    for (const { partition, start, end } of await log.bounds(deadTopic)) {
      const letters = partitions.get(partition) ?? { next: start, open: new Set<number>() };
      partitions.set(partition, letters);
      // A topic that was recreated starts again, so its offsets belong to other letters.
      if (end < letters.next) {
        letters.open.clear();
        letters.next = start;
      }
      for (const offset of letters.open) if (offset < start) letters.open.delete(offset);
      for await (const record of log.read({ topic: deadTopic, partition, start: Math.max(start, letters.next), end })) {
        const settled = settledOffsetOf(record);
        if (settled !== null) letters.open.delete(settled);
        else if (openIn(partitions) < openMax) letters.open.add(record.offset);
        letters.next = record.offset + 1;
      }
      letters.next = Math.max(letters.next, end);
    }
    known.set(topic, partitions);
  };
  return {
    async refresh() {
      for (const topic of topics) await readOn(topic, known.get(topic) ?? new Map());
    },
    counts: () => new Map([...known].map(([topic, partitions]) => [topic, openIn(partitions)])),
  };
}

/**
 * Registers the gauge of open dead letters. Every process of a service reports the same number: use the maximum, not
 * the sum. While the log does not answer, the last known number is reported.
 */
export function reportDeadLetterCounts(letters: DeadLetterCounter, metrics: Metrics): void {
  let reading: Promise<void> | null = null;
  let readAtMs = Number.NEGATIVE_INFINITY;
  const readOn = () => {
    if (reading !== null || performance.now() - readAtMs < REFRESH_EVERY_MS) return reading;
    readAtMs = performance.now();
    reading = letters
      .refresh()
      .catch(() => {})
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  metrics.collectedGauge('playline_stream_open_dead_letters', HELP, {
    labelNames: ['topic'],
    async collect(gauge) {
      await waitAtMost(COLLECT_MAX_MS, readOn() ?? Promise.resolve(), () => {});
      gauge.reset();
      for (const [topic, count] of letters.counts()) gauge.set({ topic }, count);
    },
  });
}
