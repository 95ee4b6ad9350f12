/** Floor: only the consumer's client. Counts `EVENTS` records of a topic from its beginning. */
import { logLevel } from 'kafkajs';
import { createKafka } from '../kafka-client.ts';

const wanted = Number(process.env.EVENTS);
const kafka = createKafka('floor', (process.env.KAFKA_BROKERS ?? '').split(','), logLevel.ERROR);
const consumer = kafka.consumer({ groupId: process.env.CONSUMER_GROUP ?? 'floor', maxWaitTimeInMs: 200 });
await consumer.connect();
await consumer.subscribe({ topic: process.env.BENCH_TOPIC ?? '', fromBeginning: true });

const before = process.cpuUsage();
let events = 0;
await new Promise<void>((resolve, reject) => {
  const eachBatch = async ({ batch }: { batch: { messages: unknown[] } }) => {
    events += batch.messages.length;
    if (events >= wanted) resolve();
  };
  consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch }).catch(reject);
});
const { user, system } = process.cpuUsage(before);
// resourceUsage returns kibibytes.
const memoryPeakMib = Math.round(process.resourceUsage().maxRSS / 1024);
process.send?.({ events, cpuSeconds: (user + system) / 1e6, memoryPeakMib });
await consumer.disconnect();
process.disconnect?.();
