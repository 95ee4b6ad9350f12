import { openRedisKeyStore } from '@playline/access-keys/redis';
import { openRedisIdentityGraph } from '@playline/identity/redis';
import { ConfigError, parseConfig } from '@playline/runtime';
import { runCommand } from './app.ts';
import { EXIT, type Terminal, UnreachableError } from './command.ts';
import { createIdentityCommand } from './commands/identity.ts';
import { createKeysCommand } from './commands/keys.ts';
import { createSimulateCommand } from './commands/simulate.ts';
import { configSchema } from './config.ts';

const terminal: Terminal = {
  result: (line) => void process.stdout.write(`${line}\n`),
  progress: (line) => void process.stderr.write(`${line}\n`),
  isInteractive: process.stderr.isTTY === true,
};

async function main(): Promise<number> {
  const config = parseConfig(configSchema, process.env);
  const redisUrl = () => {
    if (config.REDIS_URL !== undefined) return config.REDIS_URL;
    throw new UnreachableError('REDIS_URL is not set: it tells where keys and identities are kept');
  };
  const stop = new AbortController();
  // The first signal ends the sending and reconciles; the second ends the process as usual.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const commands = [
    createKeysCommand({
      openKeyStore: async () => openRedisKeyStore({ url: redisUrl() }),
      prefix: config.ACCESS_KEY_PREFIX,
    }),
    createIdentityCommand(async () => openRedisIdentityGraph({ url: redisUrl() })),
    createSimulateCommand({ headerPrefix: config.HTTP_HEADER_PREFIX, folder: process.cwd(), stop: stop.signal }),
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
