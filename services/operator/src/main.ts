import { createReadCode } from '@playline/chain/read-code';
import { createRpcNode } from '@playline/chain/rpc';
import { TOPICS } from '@playline/contracts';
import { ConfigError, parseConfig } from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { type Addresses, createAddresses } from './addresses.ts';
import { createCompletionCommand, runCommand } from './app.ts';
import { EXIT } from './command.ts';
import { createCommandGroups } from './commands/groups.ts';
import { configSchema } from './config.ts';
import type { StoreOpeners } from './store-openers.ts';
import { createTerminal, printLines } from './terminal.ts';

const terminal = createTerminal(process);

// Store clients are loaded lazily, because loading all of them would double the run time of most commands.
const keyStores = () => import('@playline/access-keys/redis');
const kafkaClients = () => import('@playline/stream/kafka');
const erasureTables = () => import('@playline/erasure/clickhouse');

function createStores({ redis, kafka, registry, clickhouse, nodes }: Addresses, topicPrefix: string): StoreOpeners {
  const operator = () => ({ ...kafka(), clientId: 'operator' });
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const consentTopic = topicPrefix + TOPICS.consents.name;
  return {
    openLog: async () => (await kafkaClients()).openLogReader(operator()),
    openOffsets: async () => (await kafkaClients()).openGroupOffsets(operator()),
    readTopicSettings: async (topics) => (await kafkaClients()).readTopicSettings(operator(), topics),
    openPublisher: async (name) => (await kafkaClients()).openAtomicPublisher({ ...kafka(), name }),
    openProducer: async (...topics) => (await kafkaClients()).openProducer({ ...operator(), topics }),
    createSchemas: async () => (await kafkaClients()).createSchemaRegistry(registry()),
    createRegistrar: async () => (await kafkaClients()).createRegistryAdmin(registry()),
    openKeyUsage: async () => (await keyStores()).openRedisKeyUsage(redis()),
    openRecordView: async (kind) => (await keyStores()).openRedisRecords(kind, redis()),
    openSessions: async () => (await keyStores()).openRedisSessions(redis()),
    openPeople: async () =>
      (await import('@playline/people/redis')).openRedisPeople({ ...redis(), linkTopic, consentTopic }),
    openMints: async () => (await import('@playline/mints/redis')).openRedisMints(redis()),
    openMintReader: async () => (await import('@playline/mints/clickhouse')).openMintReader(clickhouse()),
    openErasureRecords: async () => (await erasureTables()).openErasureRecords(clickhouse()),
    openErasureRows: async () => (await erasureTables()).openErasureRows(clickhouse()),
    openChainStore: async () => (await import('@playline/chain/clickhouse')).openChainStore(clickhouse()),
    readCode: (contract) => createReadCode(nodes())(contract),
    createNode: (node) => createRpcNode(node),
  };
}

async function main(): Promise<number> {
  const [config, folder] = [parseConfig(configSchema, process.env), process.cwd()];
  const faults = createConnectionFaults({ warn: (_, message) => terminal.progress(message) });
  const addresses = createAddresses(config, folder, faults);
  const stores = createStores(addresses, config.TOPIC_PREFIX);
  const stop = new AbortController();
  // The first signal stops the command gracefully; a second signal ends the process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const { stdin, stdout, env: environment } = process;
  const context = { config, addresses, stores, folder, stdin, stdout, environment, stop: stop.signal };
  const groups = createCommandGroups(context);
  const args = process.argv.slice(2);
  const called = groups.filter(({ names }) => names.includes(args[0] ?? ''));
  const loaded = (called.length > 0 ? called : groups).map((group) => group.load());
  const commands = (await Promise.all(loaded)).flat();
  return runCommand([...commands, createCompletionCommand(folder)], args, terminal);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  printLines(terminal.progress, error.message);
  process.exitCode = EXIT.usage;
}
