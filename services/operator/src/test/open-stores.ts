import { openRedisRecords } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer, readTopic } from '@playline/stream/kafka';
import type { RecordOpeners } from '../store-openers.ts';

/** Addresses of the test stores. This module does not import the test runner, so child processes can use it. */
export interface TestAddresses {
  readonly redis: string;
  readonly kafka: readonly string[];
  readonly registry: string;
}

export interface TestStores extends RecordOpeners {
  readTopic(topic: string): ReturnType<typeof readTopic>;
}

export function createTestStores({ redis: url, kafka: brokers, registry }: TestAddresses): TestStores {
  return {
    openLog: async () => openLogReader({ brokers, clientId: 'test' }),
    openProducer: (...topics) => openProducer({ brokers, clientId: 'test', topics }),
    readTopic: (topic) => readTopic({ brokers, topic }),
    createSchemas: async () => createSchemaRegistry({ url: registry }),
    openRecordView: (kind) => openRedisRecords(kind, { url }),
  };
}
