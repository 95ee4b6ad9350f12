import { Kafka, logLevel } from 'kafkajs';
import { patchKafkaTimer } from '../../infra/kafka/timer.ts';

/**
 * Opens kafkajs for figures and floors. Without this patch, an idle kafkajs sets a timer with a negative time every
 * millisecond. Node prints a warning for it, and a floor would be charged for wake-ups that our services do not have.
 * @param brokers `host:port` each
 */
export function createKafka(clientId: string, brokers: readonly string[], level: logLevel = logLevel.NOTHING): Kafka {
  patchKafkaTimer();
  return new Kafka({ clientId, brokers: [...brokers], logLevel: level });
}
