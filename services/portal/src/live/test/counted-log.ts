import type { LogReader, StreamRecord } from '@playline/stream';
import type { MemoryLog } from '@playline/stream/memory';

/** A reader of a log in memory that counts what is asked of it. */
export interface CountedLog {
  readonly reader: Pick<LogReader, 'bounds' | 'read' | 'committed'>;
  /** `records` are those that were handed out. */
  readonly requested: { requests: number; committed: number; readonly records: StreamRecord[] };
  /** What the group has committed, by partition. */
  readonly committed: Map<number, number>;
  /** Nothing is answered while it is true. */
  isAway: boolean;
}

/** As many as a log in memory has. */
const PARTITIONS = 6;

export function createCountedLog(log: MemoryLog): CountedLog {
  const asked: CountedLog['requested'] = { requests: 0, committed: 0, records: [] };
  const committed = new Map<number, number>();
  const ask = () => {
    asked.requests++;
    if (counted.isAway) throw new Error('no broker answers');
  };
  const ofPartition = (topic: string, partition: number) =>
    log.records(topic).filter((record) => record.partition === partition);
  const counted: CountedLog = {
    requested: asked,
    committed,
    isAway: false,
    reader: {
      bounds: async (topic) => {
        ask();
        return Array.from({ length: PARTITIONS }, (_, partition) => ({
          partition,
          start: 0,
          end: ofPartition(topic, partition).length,
        }));
      },
      read: async function* ({ topic, partition, start, end }) {
        ask();
        for (const record of ofPartition(topic, partition).slice(start, end)) {
          asked.records.push(record);
          yield record;
        }
      },
      committed: async () => {
        ask();
        asked.committed++;
        return committed;
      },
    },
  };
  return counted;
}
