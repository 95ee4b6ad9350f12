export {
  type BlockConsumerOptions,
  openBlockConsumer,
  openRecordConsumer,
  type RecordConsumerOptions,
} from './consumer/open-consumers.ts';
export type { GroupOptions } from './consumer/partitioned-consumer.ts';
export { type AtomicPublisherOptions, openAtomicPublisher } from './log/open-atomic-publisher.ts';
export { openGroupOffsets } from './log/open-group-offsets.ts';
export { type LetterCountOptions, openLetterCount } from './log/open-letter-count.ts';
export { openLogReader, type ReadTopicOptions, readTopic } from './log/open-log-reader.ts';
export { ProduceFault } from './producer/broker-faults.ts';
export { openProducer, type ProducerOptions } from './producer/open-producer.ts';
export { createRegistryAdmin, createSchemaRegistry, type RegistryAdmin } from './schema-registry.ts';
