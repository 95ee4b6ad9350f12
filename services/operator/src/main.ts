import { createInterface } from 'node:readline/promises';
import { openRedisKeyStore, openRedisKeyUsage, openRedisRecords, openRedisSessions } from '@playline/access-keys/redis';
import { openChainStore } from '@playline/chain/clickhouse';
import { createAskNode, createRpcNode } from '@playline/chain/rpc';
import { TOPICS } from '@playline/contracts';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { createConnectionFaults } from '@playline/errors';
import { openMintReader } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import { openRedisPeople } from '@playline/people/redis';
import { ConfigError, parseConfig } from '@playline/runtime';
import {
  createSchemaRegistry,
  openAtomicPublisher,
  openGroupOffsets,
  openLogReader,
  openProducer,
  readTopic,
} from '@playline/stream/kafka';
import { type Addresses, createAddresses } from './addresses.ts';
import { runCommand } from './app.ts';
import { EXIT, type Terminal } from './command.ts';
import { createAccessCommands } from './commands/access-commands.ts';
import { createAnalystsCommand } from './commands/analysts.ts';
import { createColumnsCommand } from './commands/columns.ts';
import { createErasuresCommand } from './commands/erasures.ts';
import { createFeedCommands, createImportSources } from './commands/feed-commands.ts';
import { createIdentityCommands } from './commands/identity-commands.ts';
import { createLogCommands } from './commands/log-commands.ts';
import { createMintCommand } from './commands/mint-commands.ts';
import { createSimulateCommand } from './commands/simulate.ts';
import { configSchema } from './config.ts';
import type { StoreOpeners } from './store-openers.ts';

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return lines.question(question).finally(() => lines.close());
}

const terminal: Terminal = {
  result: (line) => void process.stdout.write(`${line}\n`),
  progress: (line) => void process.stderr.write(`${line}\n`),
  isInteractive: process.stderr.isTTY === true,
  ...(process.stdin.isTTY === true ? { ask } : {}),
};

const streams = { stdin: process.stdin, stdout: process.stdout };

// A closed pipe must not crash the process; a command that depends on its output sees the failed write itself.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {});

/** Openers of every store of the configured deployment. None is opened yet, since a command needs few of them. */
function createStores({ redis, kafka, registry, clickhouse }: Addresses, topicPrefix: string): StoreOpeners {
  const operator = () => ({ ...kafka(), clientId: 'operator' });
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const consentTopic = topicPrefix + TOPICS.consents.name;
  return {
    openLog: () => openLogReader(operator()),
    openOffsets: () => openGroupOffsets(operator()),
    openPublisher: async (name) => openAtomicPublisher({ ...kafka(), name }),
    openProducer: async (...topics) => openProducer({ ...operator(), topics }),
    readTopic: async (topic) => readTopic({ ...kafka(), topic }),
    createSchemas: () => createSchemaRegistry(registry()),
    openKeyView: async () => openRedisKeyStore(redis()),
    openKeyUsage: async () => openRedisKeyUsage(redis()),
    openRecordView: async (kind) => openRedisRecords(kind, redis()),
    openSessions: async () => openRedisSessions(redis()),
    openPeople: async () => openRedisPeople({ ...redis(), linkTopic, consentTopic }),
    openMints: async () => openRedisMints(redis()),
    openMintReader: () => openMintReader(clickhouse()),
    openErasureRecords: () => openErasureRecords(clickhouse()),
    openErasureRows: () => openErasureRows(clickhouse()),
    openChainStore: () => openChainStore(clickhouse()),
    createNode: (node) => createRpcNode(node),
    createAsk: (node) => createAskNode(node),
  };
}

async function main(): Promise<number> {
  const [config, folder] = [parseConfig(configSchema, process.env), process.cwd()];
  const topicPrefix = config.TOPIC_PREFIX;
  const faults = createConnectionFaults({ warn: (_, sentence) => terminal.progress(sentence) });
  const addresses = createAddresses(config, folder, faults);
  const stores = createStores(addresses, topicPrefix);
  const { openErasureRows: openRows, openErasureRecords: openRecords, openPeople } = stores;
  const stop = new AbortController();
  // The first signal stops sending and reconciles; the second ends the process as usual.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const shared = { addresses, topicPrefix, stop: stop.signal };
  const { keys, projects, accounts, collections } = createAccessCommands(stores, { addresses, config, folder });
  const mints = createMintCommand(stores, topicPrefix);
  const commands = [
    ...[keys, projects, accounts, collections, mints],
    ...createIdentityCommands(stores, { addresses, config, keys, mints }),
    createSimulateCommand({
      headerPrefix: config.HTTP_HEADER_PREFIX,
      folder,
      chain: { sources: createImportSources(stores, topicPrefix), chainApi: addresses.chainApi },
      mint: { ...addresses, createNode: stores.createNode, createAskNode: stores.createAsk },
      clickhouse: config.CLICKHOUSE_URL === undefined ? undefined : addresses.clickhouse(),
      stop: stop.signal,
    }),
    createErasuresCommand({ openRows, openRecords, openPeople, wallClockMs: Date.now, stop: stop.signal }),
    createColumnsCommand({ clickhouse: addresses.clickhouse, wallClockMs: Date.now, stop: stop.signal }),
    createAnalystsCommand({ clickhouse: () => addresses.clickhouse(), folder, environment: process.env }),
    ...createLogCommands(stores, shared),
    ...createFeedCommands(stores, { ...shared, ...streams, folder }),
  ];
  return runCommand(commands, process.argv.slice(2), terminal);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  terminal.progress(error.message);
  process.exitCode = EXIT.usage;
}
