import { Kafka, logLevel } from 'kafkajs';
import { mendKafkaTimer } from '../../infra/kafka/timer.ts';

/**
 * Opens kafkajs as the figures and floors use it. As it comes it arms a timer with a negative time every millisecond
 * while it is idle: Node warns of it, and a floor would pay for wake-ups that our services do not have.
 * @param brokers host:port each
 */
export function createKafka(clientId: string, brokers: readonly string[], level: logLevel = logLevel.NOTHING): Kafka {
  mendKafkaTimer();
  return new Kafka({ clientId, brokers: [...brokers], logLevel: level });
}
