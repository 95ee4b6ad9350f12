import type { LogReader, StreamRecord } from '@playline/stream';
import type { MemoryLog } from '@playline/stream/memory';

const PARTITIONS = 6;

export type CountingLog = ReturnType<typeof createCountingLog>;

/** Counts the requests to an in-memory log. Requests fail while `isDown` is true. */
export function createCountingLog(log: MemoryLog) {
  const observed = { requests: 0, committed: 0, records: [] as StreamRecord[] };
  const committed = new Map<number, number>();
  const count = () => {
    observed.requests++;
    if (counting.isDown) throw new Error('no broker responds');
  };
  const recordsIn = (topic: string, partition: number) =>
    log.records(topic).filter((record) => record.partition === partition);
  const reader: Pick<LogReader, 'bounds' | 'read' | 'committed'> = {
    bounds: async (topic) => {
      count();
      return Array.from({ length: PARTITIONS }, (_, partition) => ({
        partition,
        start: 0,
        end: recordsIn(topic, partition).length,
      }));
    },
    read: async function* ({ topic, partition, start, end }) {
      count();
      for (const record of recordsIn(topic, partition).slice(start, end)) {
        observed.records.push(record);
        yield record;
      }
    },
    committed: async () => {
      count();
      observed.committed++;
      return committed;
    },
  };
  const counting = { observed, committed, isDown: false, reader };
  return counting;
}
