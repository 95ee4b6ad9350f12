/** Floor: the producer client alone, with values of the usual size and one full request in flight. */
import { Producer } from '@platformatic/kafka';
import { createMessage } from '../messages.ts';
import { startMeter } from './meter.ts';

/** A request of about 1 MB. Larger requests are not faster. */
const MESSAGES_PER_REQUEST = 1_000;
const { BENCH_TOPIC: topic = '', KAFKA_BROKERS = '' } = process.env;
const bootstrapBrokers = KAFKA_BROKERS.split(',');
const producer = new Producer({ clientId: 'floor', bootstrapBrokers, acks: -1, idempotent: true });
const now = new Date();
const messages = Array.from({ length: MESSAGES_PER_REQUEST }, (_, n) => {
  const message = createMessage(n, now);
  return { topic, key: Buffer.from(message.anonymousId), value: Buffer.from(JSON.stringify(message)) };
});

async function produceFor(ms: number): Promise<number> {
  const endMs = performance.now() + ms;
  let events = 0;
  for (; performance.now() < endMs; events += messages.length) await producer.send({ messages });
  return events;
}

await produceFor(1_500);
const meter = startMeter();
meter.send(await produceFor(5_000));
await producer.close();
