/** Floor for live messages: reads every new record on the topic and discards it without decoding. */
import { setTimeout as delay } from 'node:timers/promises';
import { openLogReader } from '@playline/stream/kafka';

const { KAFKA_BROKERS = '', TOPIC = '' } = process.env;
/** The portal's poll interval. */
const POLL_MS = 500;

const reader = openLogReader({ brokers: KAFKA_BROKERS.split(','), clientId: 'floor', onFault: () => {} });
const offsets = new Map((await reader.bounds(TOPIC)).map(({ partition, end }) => [partition, end]));
console.log('ready');
for (;;) {
  await delay(POLL_MS);
  for (const { partition, end } of await reader.bounds(TOPIC)) {
    const start = offsets.get(partition) ?? end;
    for await (const _ of reader.read({ topic: TOPIC, partition, start, end }));
    offsets.set(partition, end);
  }
}
