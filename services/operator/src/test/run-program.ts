import { tmpdir } from 'node:os';
import { Readable, Writable } from 'node:stream';
import { openRedisRecords } from '@playline/access-keys/redis';
import { openChainStore } from '@playline/chain/clickhouse';
import { createRpcNode } from '@playline/chain/rpc';
import { TOPICS } from '@playline/contracts';
import { openErasureRecords, openErasureRows } from '@playline/erasure/clickhouse';
import { openMintReader } from '@playline/mints/clickhouse';
import { openRedisMints } from '@playline/mints/redis';
import { openRedisPeople } from '@playline/people/redis';
import { createSchemaRegistry, openAtomicPublisher, openLogReader, openProducer } from '@playline/stream/kafka';
import { type Addresses, createAddresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { createErasuresCommand } from '../commands/erasures.ts';
import { createFeedCommands } from '../commands/feed-commands.ts';
import { createMintCommand } from '../commands/mints.ts';
import { configSchema } from '../config.ts';

function createStores({ redis, kafka, registry, clickhouse }: Addresses, topicPrefix: string) {
  const operator = () => ({ ...kafka(), clientId: 'operator' });
  const linkTopic = topicPrefix + TOPICS.identityLinks.name;
  const consentTopic = topicPrefix + TOPICS.consents.name;
  return {
    openLog: async () => openLogReader(operator()),
    openPublisher: async (name: string) => openAtomicPublisher({ ...kafka(), name }),
    openProducer: async (...topics: readonly string[]) => openProducer({ ...operator(), topics }),
    createSchemas: async () => createSchemaRegistry(registry()),
    openRecordView: async (kind: Parameters<typeof openRedisRecords>[0]) => openRedisRecords(kind, redis()),
    openPeople: async () => openRedisPeople({ ...redis(), linkTopic, consentTopic }),
    openMints: async () => openRedisMints(redis()),
    openMintReader: async () => openMintReader(clickhouse()),
    openErasureRecords: async () => openErasureRecords(clickhouse()),
    openErasureRows: async () => openErasureRows(clickhouse()),
    openChainStore: async () => openChainStore(clickhouse()),
    createNode: (node: Parameters<typeof createRpcNode>[0]) => createRpcNode(node),
  };
}

/**
 * Runs `chain`, `import`, `replicate`, `mints` or `erasures` with the settings in `environment`, like `runMain`, but in
 * this process, because starting a process takes a second of CPU time. Each test file also uses `runMain` once, to
 * verify that the program runs the command.
 */
export async function runProgram(
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<{ code: number; out: string; err: string }> {
  const config = configSchema.parse(environment);
  const [folder, topicPrefix, stop] = [tmpdir(), config.TOPIC_PREFIX, new AbortController().signal];
  const addresses = createAddresses(config, folder);
  const stores = createStores(addresses, topicPrefix);
  const { openErasureRows: openRows, openErasureRecords: openRecords, openPeople } = stores;
  const [out, err]: [string[], string[]] = [[], []];
  const stdout = new Writable({
    write: (chunk, _, done) => {
      out.push(String(chunk));
      done();
    },
  });
  const commands = [
    createMintCommand(stores as Parameters<typeof createMintCommand>[0], topicPrefix),
    createErasuresCommand({ openRows, openRecords, openPeople, wallClockMs: Date.now, stop }),
    ...createFeedCommands(stores, { addresses, topicPrefix, stop, stdin: Readable.from([]), stdout, folder }),
  ];
  const code = await runCommand(commands, args, {
    result: (line) => void out.push(`${line}\n`),
    progress: (line) => void err.push(`${line}\n`),
    isInteractive: false,
  });
  return { code, out: out.join(''), err: err.join('') };
}
