import type { Readable } from 'node:stream';
import type { ChainNode, ChainStore } from '@playline/chain';
import type { ClickHouseAccount } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import type { KafkaAddress } from '../addresses.ts';
import type { Command } from '../command.ts';
import type { ImportSources } from '../import/import-way.ts';
import { createChainCommand } from './chain.ts';
import { createImportCommand } from './import.ts';
import { createLogSources, type LogAdapters, type LogCommandsContext } from './log-commands.ts';
import { createReplicateCommand } from './replicate.ts';

/** Opens what the commands work with; `@playline/stream/kafka` and `@playline/chain/clickhouse` have them. */
export interface FeedAdapters
  extends Pick<LogAdapters, 'openLogReader' | 'createSchemaRegistry' | 'openAtomicPublisher'> {
  readonly openProducer: (options: KafkaAddress & { clientId: string; topics: string[] }) => Promise<Producer>;
  readonly openChainStore: (account: ClickHouseAccount) => ChainStore;
  readonly createRpcNode: (node: { name: string; url: string }) => ChainNode;
}

export interface FeedCommandsContext extends Pick<LogCommandsContext, 'addresses' | 'topicPrefix' | 'stop'> {
  readonly stdin: Readable;
  readonly stdout: NodeJS.WritableStream;
  /** Where paths begin that are not whole. */
  readonly folder: string;
}

/** What imports work with, of the deployment that the addresses name. */
export function createImportSources(
  adapters: FeedAdapters,
  { addresses, topicPrefix }: Pick<FeedCommandsContext, 'addresses' | 'topicPrefix'>,
): ImportSources {
  return {
    ...createLogSources(adapters, addresses),
    openProducer: (topic) => adapters.openProducer({ ...addresses.kafka(), clientId: 'operator', topics: [topic] }),
    openStore: () => adapters.openChainStore(addresses.clickhouse()),
    topicPrefix,
  };
}

/**
 * The commands about activities of chains: `import` puts them in, `replicate` copies what readers are served, `chain` looks
 * at the chains themselves.
 */
export function createFeedCommands(adapters: FeedAdapters, context: FeedCommandsContext): Command[] {
  const { addresses, stop, folder, stdin, stdout } = context;
  const writeOut = (text: string) =>
    new Promise<void>((resolve, reject) => {
      stdout.write(text, (fault) => (fault == null ? resolve() : reject(toOutputFault(fault))));
    });
  const sources = createImportSources(adapters, context);
  const { createRpcNode: createNode } = adapters;
  return [
    createChainCommand({
      ...{ ...sources, chains: addresses.indexedChains, createNode, stop, wallClockMs: Date.now },
      openPublisher: (name) => adapters.openAtomicPublisher({ ...addresses.kafka(), name }),
    }),
    createImportCommand({ ...sources, stdin, folder, stop }),
    createReplicateCommand({ clickhouse: addresses.clickhouse, chainApi: addresses.chainApi, writeOut, folder, stop }),
  ];
}

/** Said of a pipe whose reader has ended, as `head` does. */
function toOutputFault(fault: Error): Error {
  const hasEnded = (fault as NodeJS.ErrnoException).code === 'EPIPE';
  return hasEnded ? new Error('whoever read the copy from standard output has ended') : fault;
}
