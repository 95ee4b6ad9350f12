// All commands of `npm run`: description, flags, arguments, and what they delete. Plain JavaScript, because
// bootstrap.mjs checks the arguments on Node 18 and later before anything is installed or deleted.
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

/** Exit codes of all commands. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 };

const NO_OPTIONS = {};
const YES = { yes: { type: 'boolean' } };
const STACK = {
  usage: '[--no-chain] [--cluster] [--services <name,…>]',
  details: `  --no-chain            start without the chain
  --cluster             start three Kafka brokers, a Redis Cluster, two ClickHouse nodes and two processes of each service
  --services <name,…>   start only these services, separated by commas; "none" starts only the stores, with topics
                        and tables`,
  options: { 'no-chain': { type: 'boolean' }, cluster: { type: 'boolean' }, services: { type: 'string' } },
};
const TESTS = {
  usage: '[path …] [-t title]',
  options: { testNamePattern: { type: 'string', short: 't' } },
  argumentsMax: 1000,
};

/**
 * `options`: flags for `parseArgs`; `argumentsMax`: maximum number of positional arguments, of which the first is the
 * `subcommand`, if any. A command without `options`
 * checks its arguments itself. A command with `isReadOnly` installs nothing.
 */
const COMMANDS = {
  start: {
    help: 'installs missing programs, starts the stack, posts one test event, runs until Ctrl-C',
    ...STACK,
  },
  up: { help: 'starts the stack in the background and returns when one test event is stored', ...STACK },
  down: { help: 'stops the stack and keeps its data', options: NO_OPTIONS },
  reset: {
    help: 'stops the stack and DELETES data, secrets and keys, after confirmation',
    usage: '[--yes]',
    details: '  --yes   skip the confirmation prompt',
    options: YES,
    warning: 'This deletes all events, identities, keys and secrets of the stack in this checkout.',
  },
  doctor: {
    help: 'finds problems with this machine that prevent the stack from running, and suggests fixes',
    usage: '[--cluster]',
    details: '  --cluster   check memory and ports for a start with --cluster',
    options: { cluster: { type: 'boolean' } },
    isReadOnly: true,
  },
  status: {
    help: 'shows each process with its state, age, restarts, lag and last error',
    usage: '[--json]',
    details:
      '  --json   print one JSON line\n\nExit code 1 if a process is not ready or runs without a supervisor; 3 if the stack is not running.',
    options: { json: { type: 'boolean' } },
    isReadOnly: true,
  },
  logs: {
    help: 'shows the last log lines of each process, or searches the logs; in a terminal, follows the logs',
    usage: '[name …] [--since 10m] [--level warn] [--grep text] [--trace id]',
    details: `  --since <time>     lines of the last seconds, minutes, hours or days: 30s, 10m, 2h, 1d
  --level <level>    lines of at least this level: debug, info, warn, error or fatal
  --grep <text>      lines that contain the text, in upper or lower case
  --trace <id>       lines that contain the trace id of a request, 32 hexadecimal digits

With an option, the complete logs are searched. The logs of the stores have no fields, so only --grep searches them.`,
    options: {
      since: { type: 'string' },
      level: { type: 'string' },
      grep: { type: 'string' },
      trace: { type: 'string' },
    },
    argumentsMax: 100,
    isReadOnly: true,
  },
  test: { help: 'installs missing programs, checks format, lint and types, then tests against real stores', ...TESTS },
  'test:all': {
    help: 'runs all tests, including the long tests for faults, erasures, upgrades and browsers',
    ...TESTS,
  },
  'test:containers': {
    help: 'runs docker-compose.yml and tests it; starts a container engine if necessary (Debian, as root)',
    usage: '[-t title]',
    options: TESTS.options,
  },
  'test:alerts': {
    help: 'injects a fault for every alert and checks that it fires and clears; needs root and 90 minutes',
    usage: '[-t title]',
    options: TESTS.options,
  },
  demo: {
    help: 'starts the stack if necessary, loads 30 days of a generated game, and prints the portal URL',
    usage: '[--project <id>] [--environment <name>]',
    details:
      '  --project <id>         project id or name (default: demo)\n  --environment <name>   environment of the kind development (default: development)\n\nRepeating the command does not add events.',
    options: { project: { type: 'string' }, environment: { type: 'string' } },
  },
  simulate: {
    help: 'generates game or chain traffic or mint requests, and compares the result with the stored rows',
  },
  keys: { help: 'lists, creates, refreshes and revokes access keys; creates and disables signable keys' },
  projects: { help: 'creates and lists projects, their environments and their limits' },
  accounts: { help: 'manages portal accounts: links, invitations, roles, account recovery' },
  mints: { help: 'lists mint requests and signers, and retries failed requests' },
  collections: { help: 'links chain contracts to projects; lists, renames and unlinks collections' },
  identity: {
    help: 'shows identities and links of a person, splits wrongly merged persons, rebuilds the graph',
  },
  consent: { help: 'rebuilds the consents in Redis' },
  rebuild: { help: 'restores all data in a Redis that lost its data' },
  backup: { help: 'copies tables, topics, offsets and schemas to a folder or to S3' },
  restore: { help: 'replaces all tables by a backup, without the people who were erased since' },
  verify: { help: 'compares stored rows with the log' },
  trace: { help: 'follows a request or a message: log, row, person, links, rejections' },
  offsets: { help: 'shows consumer offsets and resolves truncated logs' },
  derive: { help: 'repairs the tables derived from events' },
  'dead-letters': { help: 'lists, shows, replays and drops messages that could not be processed' },
  erasures: { help: 'lists, shows and verifies erasures; searches for remaining rows' },
  columns: { help: 'adds, lists and drops columns for event properties' },
  analysts: { help: 'creates, grants, lists and drops accounts for analysts' },
  chain: { help: 'shows indexing progress, compares the stored history with the chain, edits token descriptions' },
  import: { help: 'publishes chain activities and tokens from a JSON Lines file' },
  replicate: { help: 'copies the history of a chain over HTTP and resumes after interruptions' },
  shards: {
    help: 'divides the rows of ClickHouse among more shards (infra/clickhouse/README.md)',
    usage: 'reshard',
    details: 'Requires CLICKHOUSE_CLUSTER and CLICKHOUSE_SHARD_URLS of the new cluster, and the operator account.',
    options: NO_OPTIONS,
    argumentsMax: 1,
    subcommand: 'reshard',
  },
  contracts: {
    help: 'compiles the contracts of the demo chain',
    usage: '[--check]',
    details: '  --check   write nothing; exit with 1 if the output differs',
    options: { check: { type: 'boolean' } },
  },
  bench: { help: 'runs the benchmarks' },
  fuzz: { help: 'posts generated batches and checks every response' },
  faults: { help: 'injects faults and checks that the pipeline recovers' },
  attacks: { help: 'attacks a stack as one tenant and measures the effect on another tenant' },
  help: { help: 'lists all commands by purpose', options: NO_OPTIONS },
  completion: { help: 'prints a bash completion script for these commands' },
  exec: { help: 'runs a tool from node_modules: exec <tool> …' },
  supervise: { help: 'runs the supervisor for `up`', options: STACK.options },
};

/** The commands by purpose. The scripts in package.json have the same order and headings. */
const GROUPS = {
  'run the stack': ['start', 'up', 'down', 'status', 'logs', 'doctor', 'reset', 'help', 'completion'],
  'see it work': ['demo', 'simulate'],
  'manage access': ['projects', 'keys', 'accounts', 'collections', 'analysts'],
  'manage people': ['identity', 'consent', 'erasures'],
  'work with the data': ['columns', 'import', 'replicate', 'chain', 'mints', 'shards'],
  'find and repair faults': ['verify', 'trace', 'derive', 'dead-letters', 'offsets', 'rebuild', 'backup', 'restore'],
  develop: ['test', 'test:all', 'test:containers', 'test:alerts', 'contracts', 'bench', 'fuzz', 'faults', 'attacks'],
};
export const COMMAND_NAMES = Object.values(GROUPS).flat();

export const isReadOnly = ([name = '']) => COMMANDS[name].isReadOnly === true;

/** Returns how to call a command. `start` and `test` are built into npm. */
const callOf = (name) => (name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`);

function helpOf(name) {
  const { help, usage = '', details } = COMMANDS[name];
  const lines = [
    `usage: ${callOf(name)}${usage === '' ? '' : ` -- ${usage}`}`,
    '',
    `${help[0].toUpperCase()}${help.slice(1)}.`,
  ];
  if (details !== undefined) lines.push('', details);
  return [...lines, '', 'Exit codes: 0 success, 1 failure, 2 invalid arguments, 3 a dependency does not respond.'].join(
    '\n',
  );
}

function overview() {
  const width = COMMAND_NAMES.reduce((most, name) => Math.max(most, callOf(name).length), 0);
  const lineOf = (name) => `  ${callOf(name).padEnd(width)}  ${COMMANDS[name].help}`;
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
  const { options, argumentsMax = 0, subcommand } = COMMANDS[name];
  if (options === undefined) return null;
  if (args.includes('--help') || args.includes('-h')) return { code: EXIT.ok, text: helpOf(name) };
  try {
    const { positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    if (subcommand !== undefined && positionals[0] !== subcommand) throw new Error(`expected ${subcommand}`);
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
