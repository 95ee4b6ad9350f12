import type { IndexedChain } from '@playline/chain';
import {
  type ActivityRecord,
  activityCodec,
  FRAME_BYTES,
  indexProgressCodec,
  schemaSubjectOf,
  TOPICS,
  tokenCodec,
} from '@playline/contracts';
import type { LogReader } from '@playline/stream';
import { createSchemaRegistry, openAtomicPublisher, openLogReader, readTopic } from '@playline/stream/kafka';
import { openOwnStores, openServiceProcesses, testStores } from '@playline/testkit';
import { openIndexLogs } from '../log/open-index-logs.ts';

const MAIN = new URL('../main.ts', import.meta.url).pathname;

export const PARTITIONS = 2;

export interface OpenLogsOptions {
  /** Called when a transaction's records are sent. The transaction stays open until the promise resolves. */
  readonly beforeCommit?: () => Promise<void>;
  readonly onBounds?: () => void;
}

function watchBounds(log: LogReader, onBounds: () => void = () => {}): LogReader {
  return {
    committed: (...args) => log.committed(...args),
    read: (range) => log.read(range),
    bounds: (...args) => {
      onBounds();
      return log.bounds(...args);
    },
    close: () => log.close(),
  };
}

/** Creates separate topics for a test, and starts indexers that use them. */
export async function openRealIndexers() {
  const stores = await openOwnStores({ partitions: PARTITIONS });
  const brokers = testStores().kafka;
  const { KAFKA_BROKERS = '', SCHEMA_REGISTRY_URL = '' } = stores.environment;
  const processes = openServiceProcesses(MAIN, {
    KAFKA_BROKERS,
    SCHEMA_REGISTRY_URL,
    TOPIC_PREFIX: stores.prefix,
    LOG_LEVEL: 'warn',
  });
  const valuesOf = async (name: string) => {
    const records = await readTopic({ brokers, topic: stores.prefix + name });
    return records.map(({ value }) => value!.subarray(FRAME_BYTES));
  };
  const registry = createSchemaRegistry({ url: SCHEMA_REGISTRY_URL });
  return {
    /** Starts an indexer. All other settings have test defaults. */
    start: (chain: Partial<IndexedChain>, settings: Readonly<Record<string, string>> = {}) =>
      processes.start({ CHAIN_NODES: JSON.stringify([chain]), ...settings }),
    openLogs: ({ beforeCommit, onBounds }: OpenLogsOptions = {}) =>
      openIndexLogs({
        tracing: null,
        openPublisher: (name) => openAtomicPublisher({ brokers, name, ...(beforeCommit && { beforeCommit }) }),
        log: watchBounds(openLogReader({ brokers, clientId: 'test' }), onBounds),
        schemaIdOf: (topic, schema) => registry.idOf(schemaSubjectOf(topic), schema),
        schemaOf: registry.schemaOf,
        topicPrefix: stores.prefix,
      }),
    activities: async (): Promise<ActivityRecord[]> =>
      (await valuesOf(TOPICS.activities.name)).map(activityCodec.decode),
    tokens: async () => (await valuesOf(TOPICS.tokens.name)).map(tokenCodec.decode),
    progress: async () => (await valuesOf(TOPICS.indexProgress.name)).map(indexProgressCodec.decode),
    close: async () => {
      await processes.close();
      await stores.close();
    },
  };
}
