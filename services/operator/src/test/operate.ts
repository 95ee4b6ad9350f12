import { openErasureRecords } from '@playline/erasure/clickhouse';
import * as log from '@playline/stream/kafka';
import { createAddresses } from '../addresses.ts';
import { runCommand } from '../app.ts';
import { createLogCommands } from '../commands/log-commands.ts';
import { configSchema } from '../config.ts';

/** What a command answered. */
export interface Answer {
  readonly code: number;
  readonly lines: string[];
  /** Of its `--json`; null without. */
  readonly json: unknown;
}

/** Runs the log commands as they are, on the stores that an environment names. */
export function createOperate(
  environment: Readonly<Record<string, string>>,
  topicPrefix: string,
): (...args: string[]) => Promise<Answer> {
  const addresses = createAddresses(configSchema.parse(environment), '/nowhere');
  const openRecords = () => openErasureRecords(addresses.clickhouse());
  return async (...args) => {
    const lines: string[] = [];
    const { signal } = new AbortController();
    const commands = createLogCommands(log, { addresses, openRecords, topicPrefix, stop: signal });
    const code = await runCommand(commands, args, {
      result: (line) => void lines.push(line),
      progress: () => {},
      isInteractive: false,
    });
    return { code, lines, json: args.includes('--json') ? JSON.parse(lines[0] ?? 'null') : null };
  };
}
