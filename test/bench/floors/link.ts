// Floor for the linker: reads `EVENTS` records, sends one pipelined HSET per record and commits each batch.
import { Redis } from 'ioredis';
import { openFloorConsumer } from './consumer.ts';
import { startMeter } from './meter.ts';

const wanted = Number(process.env.EVENTS);
const name = process.env.BENCH_KEY ?? 'test-floor';
/** Distributes fields over many hashes, so that each hash stays small. */
const HASHES = 1_000;
const redis = new Redis(process.env.REDIS_URL ?? '');
const consumer = await openFloorConsumer();
const meter = startMeter();
let events = 0;
await new Promise<void>((resolve, reject) => {
  consumer
    .run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        const { topic, partition, messages } = batch;
        if (events === 0) meter.restart();
        const pipeline = redis.pipeline();
        for (const { offset, value } of messages)
          pipeline.hset(`${name}:${Number(offset) % HASHES}`, offset, value ?? '');
        await pipeline.exec();
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(batch.lastOffset()) + 1) }]);
        events += messages.length;
        if (events >= wanted) resolve();
      },
    })
    .catch(reject);
});
meter.send(events);
for (let hash = 0; hash < HASHES; hash++) await redis.unlink(`${name}:${hash}`);
redis.disconnect();
await consumer.disconnect();
