import type { LogReader, OutgoingRecord, Producer, StreamRecord } from '@playline/stream';
import { openLogReader, openProducer } from '@playline/stream/kafka';
import { until } from '@playline/testkit';

/** Writes and reads a log in tests. Topic names include the prefix. */
export interface LogAccess {
  readonly producer: Producer;
  readonly reader: LogReader;
  publish(records: readonly OutgoingRecord[]): Promise<void>;
  read(topic: string): Promise<StreamRecord[]>;
  /** Returns the number of records in a topic that a group has not committed. */
  lag(topic: string, group: string): Promise<number>;
  /**
   * Creates a function that checks whether a group has committed all records that the topic contains now. With ticks,
   * `lag` may never be 0.
   */
  createCaughtUpCheck(topic: string, group: string): Promise<() => Promise<boolean>>;
  close(): Promise<void>;
}

export async function openLogAccess(brokers: readonly string[]): Promise<LogAccess> {
  const producer = await openProducer({ brokers, clientId: 'test' });
  await until('the producer is ready', () => producer.ready());
  const reader = openLogReader({ brokers, clientId: 'test' });
  return {
    producer,
    reader,
    publish: (records) =>
      new Promise((resolve, reject) => {
        producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
      }),
    async read(topic) {
      const records: StreamRecord[] = [];
      for (const bounds of await reader.bounds(topic))
        for await (const record of reader.read({ topic, ...bounds, isWhole: true })) records.push(record);
      return records;
    },
    async lag(topic, group) {
      const committed = await reader.committed(group, topic);
      const bounds = await reader.bounds(topic);
      return bounds.reduce((sum, { partition, end }) => sum + Math.max(0, end - (committed.get(partition) ?? 0)), 0);
    },
    async createCaughtUpCheck(topic, group) {
      const ends = await reader.bounds(topic);
      return async () => {
        const committed = await reader.committed(group, topic);
        return ends.every(({ partition, end }) => (committed.get(partition) ?? 0) >= end);
      };
    },
    close: async () => void (await Promise.all([producer.close(), reader.close()])),
  };
}
