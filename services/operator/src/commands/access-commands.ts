import {
  ACCESS_KEYS,
  ACCOUNTS,
  COLLECTIONS,
  PROJECTS,
  RATE_LIMIT_KEYS,
  RECORD_KINDS,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import type { Addresses } from '../addresses.ts';
import type { CreateCommand } from '../command.ts';
import type { OperatorConfig } from '../config.ts';
import { type DemoKeysTarget, publishDemoKey } from '../keys/demo-keys.ts';
import { createAuthor } from '../records/record-access.ts';
import { createOpenLogOfTopic, createRecordSources } from '../records/record-sources.ts';
import type { RecordOpeners, StoreOpeners } from '../store-openers.ts';
import { createAccountsCommand } from './accounts.ts';
import { createCollectionsCommand } from './collections.ts';
import { createKeysCommand } from './keys.ts';
import { createProjectsCommand } from './projects.ts';

export interface AccessCommandsContext extends Pick<DemoKeysTarget, 'folder'> {
  readonly addresses: Pick<Addresses, 'redis' | 'signerKey' | 'portal' | 'servedChains'>;
  readonly config: Pick<OperatorConfig, 'TOPIC_PREFIX' | 'ACCESS_KEY_PREFIX'>;
}

export function createAccessCommands(
  stores: RecordOpeners & Pick<StoreOpeners, 'openKeyUsage' | 'openSessions' | 'readCode'>,
  { addresses, config, folder }: AccessCommandsContext,
): Readonly<Record<'keys' | 'projects' | 'accounts' | 'collections', CreateCommand>> {
  const topicPrefix = config.TOPIC_PREFIX;
  const sourcesOf = createRecordSources(stores, { topicPrefix, author: createAuthor() });
  const shared = { keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) };
  return {
    keys: createKeysCommand({
      ...shared,
      rateLimitKeys: sourcesOf(RATE_LIMIT_KEYS),
      signableKeys: sourcesOf(SIGNABLE_KEYS),
      kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
      openAccessLog: createOpenLogOfTopic(stores, topicPrefix),
      signerKey: addresses.signerKey,
      openUsage: stores.openKeyUsage,
      prefix: config.ACCESS_KEY_PREFIX,
      publish: (changed) => publishDemoKey({ folder, redisUrl: addresses.redis().url }, changed),
    }),
    projects: createProjectsCommand(shared),
    accounts: createAccountsCommand({
      ...shared,
      accounts: sourcesOf(ACCOUNTS),
      openSessions: stores.openSessions,
      portal: addresses.portal,
    }),
    collections: createCollectionsCommand({
      ...shared,
      collections: sourcesOf(COLLECTIONS),
      servedChains: addresses.servedChains,
      readCode: stores.readCode,
    }),
  };
}
