import type { LogReader, StreamRecord } from '@playline/stream';
import type { MemoryLog } from '@playline/stream/memory';

/** A log in memory that counts requests. */
export interface CountedLog {
  readonly reader: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  /** `records` are those returned. */
  readonly requested: { requests: number; committed: number; readonly records: StreamRecord[] };
  /** Committed offsets of the group by partition. */
  readonly committed: Map<number, number>;
  /** Requests fail while true. */
  isAway: boolean;
}

/** Partitions of a log in memory. */
const PARTITIONS = 6;

export function createCountedLog(log: MemoryLog): CountedLog {
  const requested: CountedLog['requested'] = { requests: 0, committed: 0, records: [] };
  const committed = new Map<number, number>();
  const count = () => {
    requested.requests++;
    if (counted.isAway) throw new Error('no broker answers');
  };
  const ofPartition = (topic: string, partition: number) =>
    log.records(topic).filter((record) => record.partition === partition);
  const counted: CountedLog = {
    requested,
    committed,
    isAway: false,
    reader: {
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
    },
  };
  return counted;
}
