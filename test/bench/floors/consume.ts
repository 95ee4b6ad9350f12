/** Floor: the consumer client alone. Reads `EVENTS` records from the beginning of a topic. */
import { openFloorConsumer } from './consumer.ts';
import { startMeter } from './meter.ts';

const wanted = Number(process.env.EVENTS);
const consumer = await openFloorConsumer();
const meter = startMeter();
let events = 0;
await new Promise<void>((resolve, reject) => {
  const eachBatch = async ({ batch }: { batch: { messages: unknown[] } }) => {
    events += batch.messages.length;
    if (events >= wanted) resolve();
  };
  consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch }).catch(reject);
});
meter.send(events);
await consumer.disconnect();
