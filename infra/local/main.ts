// Runs one command of the local stack with Node 24; bootstrap.mjs sees to that, to its words and to the packages.
import { join } from 'node:path';
import { demoPortal } from './commands/demo-portal.ts';
import { doctor } from './commands/doctor.ts';
import { down, reset } from './commands/down.ts';
import { logs } from './commands/logs.ts';
import { contracts, exec, measure, operate, verify } from './commands/run.ts';
import { start } from './commands/start.ts';
import { status } from './commands/status.ts';
import { test } from './commands/test.ts';
import { superviseDetached, up } from './commands/up.ts';
import { type Places, placesOf } from './places.ts';

type Command = (places: Places, args: readonly string[]) => Promise<number>;

const COMMANDS: Record<string, Command> = {
  start,
  up,
  down,
  reset,
  doctor,
  status,
  logs,
  test,
  'demo-portal': demoPortal,
  simulate: operate('simulate'),
  keys: operate('keys'),
  projects: operate('projects'),
  accounts: operate('accounts'),
  mints: operate('mints'),
  collections: operate('collections'),
  identity: operate('identity'),
  consent: operate('consent'),
  rebuild: operate('rebuild'),
  verify,
  chain: operate('chain'),
  'dead-letters': operate('dead-letters'),
  offsets: operate('offsets'),
  derive: operate('derive'),
  analysts: operate('analysts'),
  erasures: operate('erasures'),
  columns: operate('columns'),
  import: operate('import'),
  replicate: operate('replicate'),
  contracts,
  bench: measure('bench'),
  fuzz: measure('fuzz'),
  faults: measure('faults'),
  exec,
  supervise: superviseDetached,
};

// Node keeps there what it compiles of our files, for what this process starts with its environment: a third of a start.
process.env.NODE_COMPILE_CACHE ??= join(placesOf().provisions, 'compile-cache');

const [name = '', ...args] = process.argv.slice(2);
try {
  process.exit(await COMMANDS[name]!(placesOf(), args));
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
