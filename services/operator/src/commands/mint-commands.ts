import { COLLECTIONS, SIGNABLE_KEYS } from '@playline/access-keys';
import type { ClickHouseAccount } from '@playline/runtime';
import type { Addresses, RedisAddress } from '../addresses.ts';
import type { Command } from '../command.ts';
import { createAuthor } from '../records/author.ts';
import { createRecordSources, type RecordAdapters } from '../records/record-sources.ts';
import { createLogSources, type LogAdapters } from './log-commands.ts';
import { createMintsCommand, type MintsContext } from './mints.ts';

/** Opens what is known of mints; `@playline/mints/redis` and `@playline/mints/clickhouse` have them. */
export interface MintAdapters extends RecordAdapters, Pick<LogAdapters, 'openAtomicPublisher'> {
  readonly openRedisMints: (options: RedisAddress) => ReturnType<MintsContext['openMints']>;
  readonly openMintReader: (account: ClickHouseAccount) => ReturnType<MintsContext['openReader']>;
}

/** The command about assets that are to be minted. */
export function createMintCommand(
  adapters: MintAdapters,
  { addresses, topicPrefix }: { readonly addresses: Addresses; readonly topicPrefix: string },
): Command {
  const author = createAuthor();
  const sourcesOf = createRecordSources(adapters, { addresses, topicPrefix, author });
  return createMintsCommand({
    ...createLogSources(adapters, addresses),
    openMints: () => adapters.openRedisMints(addresses.redis()),
    openReader: () => adapters.openMintReader(addresses.clickhouse()),
    openProducer: (topic) => adapters.openProducer({ ...addresses.kafka(), clientId: 'operator', topics: [topic] }),
    openPublisher: (name) => adapters.openAtomicPublisher({ ...addresses.kafka(), name }),
    author,
    collections: sourcesOf(COLLECTIONS),
    signableKeys: sourcesOf(SIGNABLE_KEYS),
    topicPrefix,
  });
}
