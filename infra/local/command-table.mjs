// All commands of `npm run`: description, flags, arguments, and what they delete. Plain JavaScript, because
// bootstrap.mjs checks the arguments on Node 18 and later before anything is installed or deleted.
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

/** Exit codes of all commands. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 };

const NO_OPTIONS = {};
const YES = { yes: { type: 'boolean' } };
const STACK = {
  usage: '[--no-chain]',
  more: '  --no-chain   start without the chain',
  options: { 'no-chain': { type: 'boolean' } },
};
const TESTS = {
  usage: '[path …] [-t title]',
  options: { testNamePattern: { type: 'string', short: 't' } },
  argumentsMax: 1000,
};

/**
 * `options`: flags for `parseArgs`; `argumentsMax`: maximum number of positional arguments. A command without `options`
 * checks its arguments itself. A command with `isReadOnly` installs nothing.
 */
const COMMANDS = {
  start: {
    does: 'installs missing programs, starts the stack, posts one test event, runs until Ctrl-C',
    ...STACK,
  },
  up: { does: 'starts the stack in the background and returns when one test event is stored', ...STACK },
  down: { does: 'stops the stack and keeps its data', options: NO_OPTIONS },
  reset: {
    does: 'stops the stack and DELETES data, secrets and keys, after confirmation',
    usage: '[--yes]',
    more: '  --yes   skip the confirmation prompt',
    options: YES,
    warning: 'This deletes all events, identities, keys and secrets of the stack in this checkout.',
  },
  doctor: {
    does: 'finds problems with this machine that prevent the stack from running, and suggests fixes',
    options: NO_OPTIONS,
    isReadOnly: true,
  },
  status: {
    does: 'shows each process with its state, age, restarts, lag and last error',
    usage: '[--json]',
    more: '  --json   print one JSON line\n\nExit code 1 if a process is not ready or runs without a supervisor; 3 if the stack is not running.',
    options: { json: { type: 'boolean' } },
    isReadOnly: true,
  },
  logs: {
    does: 'shows the last log lines of each process; in a terminal, follows the logs',
    usage: '[name …]',
    options: NO_OPTIONS,
    argumentsMax: 100,
    isReadOnly: true,
  },
  test: { does: 'installs missing programs, checks format, lint and types, then tests against real stores', ...TESTS },
  'test:all': {
    does: 'runs all tests, including the long tests for faults, erasures, upgrades and browsers',
    ...TESTS,
  },
  'demo-portal': {
    does: 'starts the stack if necessary, generates a minute of game traffic, and prints the portal URL',
    options: NO_OPTIONS,
  },
  simulate: {
    does: 'generates game or chain traffic or mint requests, and compares the result with the stored rows',
  },
  keys: { does: 'lists, creates, refreshes and revokes access keys; creates and disables signable keys' },
  projects: { does: 'creates and lists projects, their environments and their limits' },
  accounts: { does: 'manages portal accounts: links, invitations, roles, account recovery' },
  mints: { does: 'lists mint requests and signers, and retries failed requests' },
  collections: { does: 'links chain contracts to projects; lists, renames and unlinks collections' },
  identity: {
    does: 'shows identities and links of a person, splits wrongly merged persons, rebuilds the graph',
  },
  consent: { does: 'rebuilds the consents in Redis' },
  rebuild: { does: 'restores all data in a Redis that lost its data' },
  verify: { does: 'compares stored rows with the log' },
  offsets: { does: 'shows consumer offsets and resolves truncated logs' },
  derive: { does: 'repairs the tables derived from events' },
  'dead-letters': { does: 'lists, shows, replays and drops messages that could not be processed' },
  erasures: { does: 'lists, shows and verifies erasures; searches for remaining rows' },
  columns: { does: 'adds, lists and drops columns for event properties' },
  analysts: { does: 'creates, grants, lists and drops accounts for analysts' },
  chain: { does: 'shows indexing progress, compares the stored history with the chain, edits token descriptions' },
  import: { does: 'publishes chain activities and tokens from a JSON lines file' },
  replicate: { does: 'copies the history of a chain over HTTP and resumes after interruptions' },
  contracts: {
    does: 'compiles the contracts of the demo chain',
    usage: '[--check]',
    more: '  --check   write nothing; exit with 1 if the output differs',
    options: { check: { type: 'boolean' } },
  },
  bench: { does: 'runs the benchmarks' },
  fuzz: { does: 'posts generated batches and checks every response' },
  faults: { does: 'injects faults and checks that the pipeline recovers' },
  attacks: { does: 'attacks a stack as one tenant and measures the effect on another tenant' },
  help: { does: 'lists all commands by purpose', options: NO_OPTIONS },
  completion: { does: 'prints a bash completion script for these commands' },
  exec: { does: 'runs a tool from node_modules: exec <tool> …' },
  supervise: { does: 'runs the supervisor for `up`', options: STACK.options },
};

/** The commands by purpose. The scripts in package.json have the same order and headings. */
const GROUPS = {
  'run the stack': ['start', 'up', 'down', 'status', 'logs', 'doctor', 'reset', 'help', 'completion'],
  'see it work': ['simulate', 'demo-portal'],
  'manage access': ['projects', 'keys', 'accounts', 'collections', 'analysts'],
  'manage people': ['identity', 'consent', 'erasures'],
  'work with the data': ['columns', 'import', 'replicate', 'chain', 'mints'],
  'find and repair faults': ['verify', 'derive', 'dead-letters', 'offsets', 'rebuild'],
  develop: ['test', 'test:all', 'contracts', 'bench', 'fuzz', 'faults', 'attacks'],
};
export const COMMAND_NAMES = Object.values(GROUPS).flat();

export const isReadOnly = ([name = '']) => COMMANDS[name].isReadOnly === true;

/** Returns how to call a command. `start` and `test` are built into npm. */
const callOf = (name) => (name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`);

function helpOf(name) {
  const { does, usage = '', more } = COMMANDS[name];
  const lines = [
    `usage: ${callOf(name)}${usage === '' ? '' : ` -- ${usage}`}`,
    '',
    `${does[0].toUpperCase()}${does.slice(1)}.`,
  ];
  if (more !== undefined) lines.push('', more);
  return [...lines, '', 'Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 a dependency does not respond.'].join(
    '\n',
  );
}

function overview() {
  const width = COMMAND_NAMES.reduce((most, name) => Math.max(most, callOf(name).length), 0);
  const lineOf = (name) => `  ${callOf(name).padEnd(width)}  ${COMMANDS[name].does}`;
  const groups = Object.entries(GROUPS).map(([purpose, names]) => [`To ${purpose}`, ...names.map(lineOf)].join('\n'));
  return `${groups.join('\n\n')}\n\nRun npm run <command> -- --help for details.`;
}

/**
 * Checks the arguments of a call before the command runs.
 * @param {string[]} argv the command name and its arguments
 * @returns {{ code: number, text: string } | null} what to print instead of running the command, or null if it may run
 */
export function refusalOf([name = '', ...args]) {
  if (name === '--help' || (name === 'help' && args.length === 0)) return { code: EXIT.ok, text: overview() };
  if (!Object.hasOwn(COMMANDS, name)) {
    const text = name === '' ? overview() : `unknown command '${name}' (see npm run help)`;
    return { code: EXIT.usage, text };
  }
  const { options, argumentsMax = 0 } = COMMANDS[name];
  if (options === undefined) return null;
  if (args.includes('--help') || args.includes('-h')) return { code: EXIT.ok, text: helpOf(name) };
  try {
    const { positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    if (positionals.length > argumentsMax) throw new Error(`unexpected argument '${positionals[argumentsMax]}'`);
    return null;
  } catch (error) {
    const [reason] = error.message.split('. ');
    return { code: EXIT.usage, text: `${name}: ${reason} (see ${callOf(name)} -- --help)` };
  }
}

/**
 * Prompts for confirmation before a command deletes data, unless `--yes` is given.
 * @param {string[]} argv arguments that `refusalOf` has accepted
 * @returns {Promise<{ code: number, text: string } | null>} as for `refusalOf`
 */
export async function confirmationOf([name = '', ...args], { input = process.stdin, output = process.stderr } = {}) {
  const { warning } = COMMANDS[name];
  if (warning === undefined || args.includes('--yes')) return null;
  const unchanged = 'nothing was changed';
  if (input.isTTY !== true)
    return { code: EXIT.usage, text: `${name}: ${warning} No terminal to confirm on. Pass --yes (${unchanged}).` };
  const rl = createInterface({ input, output });
  const answer = await rl.question(`${warning} Type yes to continue: `).finally(() => rl.close());
  return answer.trim().toLowerCase() === 'yes' ? null : { code: EXIT.failed, text: `${name}: ${unchanged}` };
}
