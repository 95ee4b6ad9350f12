import { createCallNode, createRpcNode } from '@playline/chain/rpc';
import { ConfigError, deploymentSettings, parseConfig } from '@playline/runtime';
import { createConnectionFaults } from '@playline/stores';
import { createAddresses } from '../../services/operator/src/addresses.ts';
import { runCommand } from '../../services/operator/src/app.ts';
import { EXIT } from '../../services/operator/src/command.ts';
import { createImportSources } from '../../services/operator/src/commands/feed-commands.ts';
import { configSchema } from '../../services/operator/src/config.ts';
import { createTerminal, printLines } from '../../services/operator/src/terminal.ts';
import { createSimulateCommand } from './command.ts';

const terminal = createTerminal(process);

// Kafka clients are loaded on demand, because a game simulation does not need them.
const kafkaClients = () => import('@playline/stream/kafka');

async function main(): Promise<number> {
  const settings = configSchema.extend({ HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX });
  const [config, folder] = [parseConfig(settings, process.env), process.cwd()];
  const faults = createConnectionFaults({ warn: (_, message) => terminal.progress(message) });
  const { kafka, registry, clickhouse, chainApi, indexedChains } = createAddresses(config, folder, faults);
  const client = () => ({ ...kafka(), clientId: 'operator' });
  const stop = new AbortController();
  // The first signal stops sending and starts the comparison. A second signal ends the process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const command = createSimulateCommand({
    headerPrefix: config.HTTP_HEADER_PREFIX,
    folder,
    chainApi,
    indexedChains,
    clickhouse,
    hasClickHouseUrl: config.CLICKHOUSE_URL !== undefined,
    imports: createImportSources(
      {
        openLog: async () => (await kafkaClients()).openLogReader(client()),
        openProducer: async (...topics) => (await kafkaClients()).openProducer({ ...client(), topics }),
        createSchemas: async () => (await kafkaClients()).createSchemaRegistry(registry()),
        openChainStore: async () => (await import('@playline/chain/clickhouse')).openChainStore(clickhouse()),
      },
      config.TOPIC_PREFIX,
    ),
    createNode: createRpcNode,
    createCallNode,
    stop: stop.signal,
  });
  return runCommand([command], ['simulate', ...process.argv.slice(2)], terminal);
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  printLines(terminal.progress, error.message);
  process.exitCode = EXIT.usage;
}
