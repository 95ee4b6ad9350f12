import type { LogReader, StreamRecord } from '@playline/stream';
import type { MemoryLog } from '@playline/stream/memory';

const PARTITIONS = 6;

export type CountingLog = ReturnType<typeof createCountingLog>;

/** An in-memory log that counts requests. Requests fail while `isDown` is true. */
export function createCountingLog(log: MemoryLog) {
  const requested = { requests: 0, committed: 0, records: [] as StreamRecord[] };
  const committed = new Map<number, number>();
  const count = () => {
    requested.requests++;
    if (counted.isDown) throw new Error('no broker responds');
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
  const counted = { requested, committed, isDown: false, reader };
  return counted;
}
