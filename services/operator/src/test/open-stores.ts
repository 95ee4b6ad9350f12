import { openRedisRecords } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer, readTopic } from '@playline/stream/kafka';
import type { RecordOpeners } from '../store-openers.ts';

/** Addresses of a test's stores. Needs no test runner, so that tests can use it in a separate process. */
export interface TestAddresses {
  readonly redis: string;
  readonly kafka: readonly string[];
  readonly registry: string;
}

export interface TestStores extends RecordOpeners {
  /** All records of a topic. */
  readTopic(topic: string): ReturnType<typeof readTopic>;
}

/** The real stores of the access commands, opened as in `main.ts`. */
export function createTestStores({ redis: url, kafka: brokers, registry }: TestAddresses): TestStores {
  return {
    openLog: async () => openLogReader({ brokers, clientId: 'test' }),
    openProducer: (...topics) => openProducer({ brokers, clientId: 'test', topics }),
    readTopic: (topic) => readTopic({ brokers, topic }),
    createSchemas: async () => createSchemaRegistry({ url: registry }),
    openRecordView: (kind) => openRedisRecords(kind, { url }),
  };
}
