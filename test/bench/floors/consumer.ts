import { type Consumer, logLevel } from 'kafkajs';
import { createKafka } from '../kafka-client.ts';

export async function openFloorConsumer(): Promise<Consumer> {
  const { KAFKA_BROKERS = '', CONSUMER_GROUP: groupId = 'floor', BENCH_TOPIC: topic = '' } = process.env;
  const kafka = createKafka('floor', KAFKA_BROKERS.split(','), logLevel.ERROR);
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  return consumer;
}
