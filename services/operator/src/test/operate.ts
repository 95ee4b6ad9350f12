import { openErasureRecords } from '@playline/erasure/clickhouse';
import { openRedisPeople } from '@playline/people/redis';
import { createSchemaRegistry, openAtomicPublisher, openGroupOffsets, openLogReader } from '@playline/stream/kafka';
import { type Addresses, createAddresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { createLogCommands } from '../commands/log-commands.ts';
import { configSchema } from '../config.ts';

export interface CommandResult {
  readonly code: number;
  readonly lines: string[];
  /** The parsed output of `--json`, or null. */
  readonly json: unknown;
}

/** Creates a function that runs the real log commands with the stores configured in `environment`. */
export function createOperate(
  environment: Readonly<Record<string, string>>,
  topicPrefix: string,
): (...args: string[]) => Promise<CommandResult> {
  const addresses = createAddresses(configSchema.parse(environment), '/nowhere');
  return async (...args) => {
    const lines: string[] = [];
    const { signal } = new AbortController();
    const commands = createLogCommands(createLogStores(addresses), { addresses, topicPrefix, stop: signal });
    const code = await runCommand(commands, args, {
      result: (line) => void lines.push(line),
      progress: () => {},
      isInteractive: false,
    });
    return { code, lines, json: args.includes('--json') ? JSON.parse(lines[0] ?? 'null') : null };
  };
}

function createLogStores({ kafka, registry, clickhouse, redis }: Addresses) {
  const operator = () => ({ ...kafka(), clientId: 'operator' });
  return {
    openLog: async () => openLogReader(operator()),
    openOffsets: async () => openGroupOffsets(operator()),
    openPublisher: (name: string) => openAtomicPublisher({ ...kafka(), name }),
    createSchemas: async () => createSchemaRegistry(registry()),
    openErasureRecords: async () => openErasureRecords(clickhouse()),
    openPeople: async () => openRedisPeople(redis()),
  };
}
