export type { GroupOptions } from './consumer/group-options.ts';
export {
  type BlockConsumerOptions,
  openBlockConsumer,
  openRecordConsumer,
  type RecordConsumerOptions,
} from './consumer/open-consumers.ts';
export { ProduceFault } from './producer/broker-faults.ts';
export { openProducer, type ProducerOptions } from './producer/open-producer.ts';
export { createSchemaRegistry, type SchemaRegistry } from './schema-registry.ts';
