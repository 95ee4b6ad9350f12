import { openRedisKeyStore, openRedisRecords } from '@playline/access-keys/redis';
import { createSchemaRegistry, openLogReader, openProducer, readTopic } from '@playline/stream/kafka';
import { openKeyLog } from '../keys/key-log.ts';
import type { RecordOpeners, StoreOpeners } from '../store-openers.ts';

/** Addresses of the stores of a test. Nothing here needs a test runner: a test may start a process of its own with it. */
export interface TestPlaces {
  readonly redis: string;
  readonly kafka: readonly string[];
  readonly registry: string;
}

export type TestStores = RecordOpeners & Pick<StoreOpeners, 'openKeyView' | 'readTopic'>;

/** The real stores that commands about access work with, opened as `main.ts` opens them. */
export function createTestStores({ redis: url, kafka: brokers, registry }: TestPlaces): TestStores {
  return {
    openLog: () => openLogReader({ brokers, clientId: 'test' }),
    openProducer: (...topics) => openProducer({ brokers, clientId: 'test', topics }),
    readTopic: (topic) => readTopic({ brokers, topic }),
    createSchemas: () => createSchemaRegistry({ url: registry }),
    openKeyView: () => openRedisKeyStore({ url }),
    openRecordView: (kind) => openRedisRecords(kind, { url }),
  };
}

/** The log of the access keys. @param topic as it is called on the broker */
export async function openTestKeyLog(
  { openProducer, createSchemas, readTopic }: Pick<TestStores, 'openProducer' | 'createSchemas' | 'readTopic'>,
  topic: string,
) {
  const producer = await openProducer(topic);
  return openKeyLog({ producer, topic, schemas: createSchemas(), read: () => readTopic(topic) });
}
