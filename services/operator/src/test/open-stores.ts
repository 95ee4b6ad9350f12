import { openRedisKeyStore, openRedisRecords } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer, readTopic } from '@playline/stream/kafka';
import { openKeyLog } from '../keys/key-log.ts';
import type { RecordOpeners, StoreOpeners } from '../store-openers.ts';

/** Addresses of a test's stores. Needs no test runner, so that a test can also use it in a process of its own. */
export interface TestPlaces {
  readonly redis: string;
  readonly kafka: readonly string[];
  readonly registry: string;
}

export type TestStores = RecordOpeners & Pick<StoreOpeners, 'openKeyView' | 'readTopic'>;

/** The real stores of the access commands, opened as in `main.ts`. */
export function createTestStores({ redis: url, kafka: brokers, registry }: TestPlaces): TestStores {
  return {
    openLog: async () => openLogReader({ brokers, clientId: 'test' }),
    openProducer: (...topics) => openProducer({ brokers, clientId: 'test', topics }),
    readTopic: (topic) => readTopic({ brokers, topic }),
    createSchemas: async () => createSchemaRegistry({ url: registry }),
    openKeyView: () => openRedisKeyStore({ url }),
    openRecordView: (kind) => openRedisRecords(kind, { url }),
  };
}

/** The log of the access keys. @param topic full name on the broker */
export async function openTestKeyLog(
  { openProducer, createSchemas, readTopic }: Pick<TestStores, 'openProducer' | 'createSchemas' | 'readTopic'>,
  topic: string,
) {
  const producer = await openProducer(topic);
  return openKeyLog({ producer, topic, schemas: await createSchemas(), read: () => readTopic(topic) });
}
