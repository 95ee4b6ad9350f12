/** Floor of the linker: reads `EVENTS` records with the bare client, one pipelined HSET each, and commits each batch. */
import { Redis } from 'ioredis';
import { logLevel } from 'kafkajs';
import { createKafka } from '../kafka-client.ts';

const wanted = Number(process.env.EVENTS);
const name = process.env.BENCH_KEY ?? 'test-floor';
const redis = new Redis(process.env.REDIS_URL ?? '');
const kafka = createKafka('floor', (process.env.KAFKA_BROKERS ?? '').split(','), logLevel.ERROR);
const consumer = kafka.consumer({ groupId: process.env.CONSUMER_GROUP ?? 'floor', maxWaitTimeInMs: 200 });
await consumer.connect();
await consumer.subscribe({ topic: process.env.BENCH_TOPIC ?? '', fromBeginning: true });

let events = 0;
let before = process.cpuUsage();
let start = 0;
await new Promise<void>((resolve, reject) => {
  consumer
    .run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        const { topic, partition, messages } = batch;
        if (start === 0) {
          start = performance.now();
          before = process.cpuUsage();
        }
        const pipeline = redis.pipeline();
        // Spreads the fields over a thousand hashes, so that each stays small.
        for (const { offset, value } of messages)
          pipeline.hset(`${name}:${Number(offset) % 1_000}`, offset, value ?? '');
        await pipeline.exec();
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(batch.lastOffset()) + 1) }]);
        events += messages.length;
        if (events >= wanted) resolve();
      },
    })
    .catch(reject);
});
const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage(before);
process.send?.({ events, cpuSeconds: (user + system) / 1e6, seconds });
for (let at = 0; at < 1_000; at++) await redis.unlink(`${name}:${at}`);
redis.disconnect();
await consumer.disconnect();
process.disconnect?.();
