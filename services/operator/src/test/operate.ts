import { openErasureRecords } from '@playline/erasure/clickhouse';
import { openRedisPeople } from '@playline/people/redis';
import { createSchemaRegistry, openAtomicPublisher, openGroupOffsets, openLogReader } from '@playline/stream/kafka';
import { type Addresses, createAddresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { createLogCommands } from '../commands/log-commands.ts';
import { configSchema } from '../config.ts';

/** The result of a command. */
export interface CommandResult {
  readonly code: number;
  readonly lines: string[];
  /** Output of `--json`; null without it. */
  readonly json: unknown;
}

/** Runs the real log commands on the stores that an environment configures. */
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

/** The real stores of the log commands, opened as in `main.ts`. */
function createLogStores({ kafka, registry, clickhouse, redis }: Addresses) {
  const named = () => ({ ...kafka(), clientId: 'operator' });
  return {
    openLog: async () => openLogReader(named()),
    openOffsets: async () => openGroupOffsets(named()),
    openPublisher: (name: string) => openAtomicPublisher({ ...kafka(), name }),
    createSchemas: async () => createSchemaRegistry(registry()),
    openErasureRecords: async () => openErasureRecords(clickhouse()),
    openPeople: async () => openRedisPeople(redis()),
  };
}
