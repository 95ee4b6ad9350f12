import { COLLECTIONS, SIGNABLE_KEYS } from '@playline/access-keys';
import type { CreateCommand } from '../command.ts';
import { createAuthor } from '../records/record-access.ts';
import { createRecordSources } from '../records/record-sources.ts';
import type { RecordOpeners, StoreOpeners } from '../store-openers.ts';
import { createLogSources } from './log-commands.ts';
import { createMintsCommand } from './mints.ts';

export function createMintCommand(
  stores: RecordOpeners & Pick<StoreOpeners, 'openMints' | 'openMintReader' | 'openPublisher'>,
  topicPrefix: string,
): CreateCommand {
  const author = createAuthor();
  const sourcesOf = createRecordSources(stores, { topicPrefix, author });
  return createMintsCommand({
    ...createLogSources(stores),
    openMints: stores.openMints,
    openReader: stores.openMintReader,
    openProducer: stores.openProducer,
    openPublisher: stores.openPublisher,
    author,
    collections: sourcesOf(COLLECTIONS),
    signableKeys: sourcesOf(SIGNABLE_KEYS),
    topicPrefix,
  });
}
