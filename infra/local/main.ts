// Runs one command of the local stack. bootstrap.mjs has checked the arguments and installed Node 24 and the packages.
import { join } from 'node:path';
import { OPERATOR_COMMANDS } from './commands/run.ts';
import { type StackPaths, stackPathsOf } from './paths.ts';

type Command = (paths: StackPaths, args: readonly string[]) => Promise<number>;

/** Commands are loaded on demand, because most commands do not need store clients. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  start: async () => (await import('./commands/start.ts')).start,
  up: async () => (await import('./commands/up.ts')).up,
  down: async () => (await import('./commands/down.ts')).down,
  reset: async () => (await import('./commands/down.ts')).reset,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  status: async () => (await import('./commands/status.ts')).status,
  logs: async () => (await import('./commands/logs.ts')).logs,
  test: async () => (await import('./commands/test.ts')).test,
  'test:all': async () => (await import('./commands/test.ts')).testAll,
  'test:alerts': async () => (await import('./commands/test.ts')).testAlerts,
  'test:containers': async () => (await import('./commands/test.ts')).testContainers,
  demo: async () => (await import('./commands/up.ts')).demo,
  simulate: async () => (await import('./commands/run.ts')).simulate,
  verify: async () => (await import('./commands/run.ts')).verify,
  contracts: async () => (await import('./commands/run.ts')).contracts,
  shards: async () => (await import('./commands/run.ts')).shards,
  exec: async () => (await import('./commands/run.ts')).exec,
  supervise: async () => (await import('./commands/up.ts')).superviseDetached,
};

for (const name of OPERATOR_COMMANDS) COMMANDS[name] = async () => (await import('./commands/run.ts')).operate(name);
for (const name of ['bench', 'fuzz', 'faults', 'attacks'] as const)
  COMMANDS[name] = async () => (await import('./commands/run.ts')).runTestTool(name);

// The compile cache, which child processes inherit, saves a third of the start time.
process.env.NODE_COMPILE_CACHE ??= join(stackPathsOf().downloads, 'compile-cache');

const [name = '', ...args] = process.argv.slice(2);
try {
  const command = await COMMANDS[name]!();
  process.exit(await command(stackPathsOf(), args));
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
