import type { Readable } from 'node:stream';
import type { Addresses } from '../addresses.ts';
import type { CreateCommand } from '../command.ts';
import type { ImportSources } from '../import/importer.ts';
import { createLogSources, type LogOpeners, type StoreOpeners } from '../store-openers.ts';
import { createChainCommand } from './chain.ts';
import { createImportCommand } from './import.ts';
import { createReplicateCommand } from './replicate.ts';

type ImportOpeners = LogOpeners & Pick<StoreOpeners, 'openProducer' | 'openChainStore'>;

export interface FeedCommandsContext {
  readonly addresses: Pick<Addresses, 'clickhouse' | 'chainApi' | 'indexedChains'>;
  readonly topicPrefix: string;
  readonly stop: AbortSignal;
  readonly stdin: Readable;
  readonly stdout: NodeJS.WritableStream;
  readonly folder: string;
}

export function createImportSources(stores: ImportOpeners, topicPrefix: string): ImportSources {
  const { openProducer, openChainStore: openStore } = stores;
  return { ...createLogSources(stores), openProducer, openStore, topicPrefix };
}

/** The commands for chain activities: `chain`, `import` and `replicate`. */
export function createFeedCommands(
  stores: ImportOpeners & Pick<StoreOpeners, 'openPublisher' | 'createNode'>,
  { addresses, topicPrefix, stop, folder, stdin, stdout }: FeedCommandsContext,
): CreateCommand[] {
  const { openPublisher, createNode } = stores;
  const writeOut = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stdout.write(text, (fault) => (fault == null ? resolve() : reject(toOutputFault(fault))));
    });
  const sources = createImportSources(stores, topicPrefix);
  return [
    createChainCommand({
      ...sources,
      chains: addresses.indexedChains,
      createNode,
      openPublisher,
      stop,
      wallClockMs: Date.now,
    }),
    createImportCommand({ ...sources, stdin, folder, stop }),
    createReplicateCommand({ clickhouse: addresses.clickhouse, chainApi: addresses.chainApi, writeOut, folder, stop }),
  ];
}

/** A pipe breaks when its reader, such as `head`, exits early. */
function toOutputFault(fault: NodeJS.ErrnoException): Error {
  return fault.code === 'EPIPE' ? new Error('standard output was closed by its reader') : fault;
}
