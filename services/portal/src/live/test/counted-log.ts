import type { LogReader, StreamRecord } from '@playline/stream';
import type { MemoryLog } from '@playline/stream/memory';

/** Partitions of a log in memory. */
const PARTITIONS = 6;

export type CountedLog = ReturnType<typeof createCountedLog>;

/** A log in memory that counts requests, which fail while `isAway`. */
export function createCountedLog(log: MemoryLog) {
  const requested = { requests: 0, committed: 0, records: [] as StreamRecord[] };
  /** Committed offsets of the group by partition. */
  const committed = new Map<number, number>();
  const count = () => {
    requested.requests++;
    if (counted.isAway) throw new Error('no broker answers');
  };
  const ofPartition = (topic: string, partition: number) =>
    log.records(topic).filter((record) => record.partition === partition);
  const reader: Pick<LogReader, 'bounds' | 'read' | 'committed'> = {
    bounds: async (topic) => {
      count();
      return Array.from({ length: PARTITIONS }, (_, partition) => ({
        partition,
        start: 0,
        end: ofPartition(topic, partition).length,
      }));
    },
    read: async function* ({ topic, partition, start, end }) {
      count();
      for (const record of ofPartition(topic, partition).slice(start, end)) {
        requested.records.push(record);
        yield record;
      }
    },
    committed: async () => {
      count();
      requested.committed++;
      return committed;
    },
  };
  const counted = { requested, committed, isAway: false, reader };
  return counted;
}
