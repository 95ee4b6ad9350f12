import {
  ACCOUNTS,
  COLLECTIONS,
  type KeyUsage,
  type KeyView,
  PROJECTS,
  RATE_LIMIT_KEYS,
  RECORD_KINDS,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { TOPICS } from '@playline/contracts';
import type { StreamRecord } from '@playline/stream';
import type { OpenSessions } from '../accounts/account-access.ts';
import type { Addresses, KafkaAddress, RedisAddress } from '../addresses.ts';
import type { Command } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { type DemoKeysTarget, publishDemoKey } from '../keys/demo-keys.ts';
import { openKeyLog } from '../keys/key-log.ts';
import { createOpensAccessLog } from '../records/access-log.ts';
import { createAuthor } from '../records/author.ts';
import { createRecordSources, type RecordAdapters } from '../records/record-sources.ts';
import { createAccountsCommand } from './accounts.ts';
import { createCollectionsCommand } from './collections.ts';
import { createKeysCommand } from './keys.ts';
import { createProjectsCommand } from './projects.ts';

/** Opens the stores of keys and of records; `@playline/stream/kafka` and `@playline/access-keys/redis` have them. */
export interface AccessAdapters extends RecordAdapters {
  readonly openRedisKeyStore: (
    options: RedisAddress,
  ) => Promise<KeyView & { ready(): Promise<boolean>; close(): Promise<void> }>;
  readonly openRedisKeyUsage: (options: RedisAddress) => Promise<KeyUsage & { close(): Promise<void> }>;
  readonly openRedisSessions: (options: RedisAddress) => Promise<OpenSessions>;
  readonly readTopic: (options: KafkaAddress & { topic: string }) => Promise<readonly StreamRecord[]>;
}

export interface AccessCommandsContext extends Pick<DemoKeysTarget, 'folder'> {
  readonly addresses: Addresses;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'ACCESS_KEY_PREFIX'>;
}

/** The commands about who may use the service, and about what belongs to them. */
export function createAccessCommands(
  adapters: AccessAdapters,
  { addresses, config, folder }: AccessCommandsContext,
): Readonly<Record<'keys' | 'projects' | 'accounts' | 'collections', Command>> {
  const { redis, kafka, registry } = addresses;
  const topicPrefix = config.TOPIC_PREFIX;
  const topic = topicPrefix + TOPICS.accessKeys.name;
  const openLog = async () => {
    const schemas = adapters.createSchemaRegistry(registry());
    const producer = await adapters.openProducer({ ...kafka(), clientId: 'operator', topics: [topic] });
    return openKeyLog({ producer, topic, schemas, read: () => adapters.readTopic({ ...kafka(), topic }) });
  };
  const sourcesOf = createRecordSources(adapters, { addresses, topicPrefix, author: createAuthor() });
  const shared = { openView: async () => adapters.openRedisKeyStore(redis()), openLog, projects: sourcesOf(PROJECTS) };
  return {
    keys: createKeysCommand({
      ...shared,
      rateLimitKeys: sourcesOf(RATE_LIMIT_KEYS),
      signableKeys: sourcesOf(SIGNABLE_KEYS),
      kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
      openAccessLog: createOpensAccessLog(adapters, { addresses, topicPrefix }),
      signerKey: addresses.signerKey,
      openUsage: async () => adapters.openRedisKeyUsage(redis()),
      prefix: config.ACCESS_KEY_PREFIX,
      publish: (changed) => publishDemoKey({ folder, redisUrl: redis().url }, changed),
    }),
    projects: createProjectsCommand(shared),
    accounts: createAccountsCommand({
      ...shared,
      accounts: sourcesOf(ACCOUNTS),
      openSessions: () => adapters.openRedisSessions(redis()),
      portal: addresses.portal,
    }),
    collections: createCollectionsCommand({ ...shared, collections: sourcesOf(COLLECTIONS) }),
  };
}
