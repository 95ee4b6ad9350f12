/** Floor: only the producer's client, with values of the right size and one full request in flight. */
import { Producer } from '@platformatic/kafka';
import { createMessage } from '../messages.ts';

const WARM_UP_MS = 1_500;
const WINDOW_MS = 5_000;
/** A request of about 1 MB. Larger ones are not faster. */
const MESSAGES_PER_REQUEST = 1_000;

const topic = process.env.BENCH_TOPIC ?? '';
const producer = new Producer({
  clientId: 'floor',
  bootstrapBrokers: (process.env.KAFKA_BROKERS ?? '').split(','),
  acks: -1,
  idempotent: true,
});
const now = new Date();
const messages = Array.from({ length: MESSAGES_PER_REQUEST }, (_, n) => {
  const message = createMessage(n, now);
  return { topic, key: Buffer.from(message.anonymousId), value: Buffer.from(JSON.stringify(message)) };
});

async function produceFor(ms: number): Promise<number> {
  const end = performance.now() + ms;
  let events = 0;
  while (performance.now() < end) {
    await producer.send({ messages });
    events += messages.length;
  }
  return events;
}

await produceFor(WARM_UP_MS);
const before = process.cpuUsage();
const events = await produceFor(WINDOW_MS);
const { user, system } = process.cpuUsage(before);
process.send?.({ events, cpuSeconds: (user + system) / 1e6 });
await producer.close();
process.disconnect?.();
