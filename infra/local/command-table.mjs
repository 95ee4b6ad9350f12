// All commands of `npm run`: effect, flags, arguments, and what they destroy. Plain JavaScript, because bootstrap.mjs
// checks arguments with it on any Node from 18 before anything is installed or removed.
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

/** Exit codes of every command. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 };

const NOTHING = {};
const YES = { yes: { type: 'boolean' } };
const STACK = {
  usage: '[--no-chain]',
  more: '  --no-chain   leave the chain out',
  options: { 'no-chain': { type: 'boolean' } },
};
const TESTS = {
  usage: '[path …] [-t title]',
  options: { testNamePattern: { type: 'string', short: 't' } },
  argumentsMax: 1000,
};

/**
 * `options`: flags for `parseArgs`; `argumentsMax`: number of other arguments. A command without `options` checks its
 * arguments itself. A command that `isReadOnly` installs nothing.
 */
const COMMANDS = {
  start: {
    does: 'installs what is missing, starts everything, checks it with one event, runs until Ctrl-C',
    ...STACK,
  },
  up: { does: 'starts everything in the background, and returns when one event has been stored', ...STACK },
  down: { does: 'stops everything; the data is kept', options: NOTHING },
  reset: {
    does: 'stops everything and REMOVES data, secrets and keys, after a prompt',
    usage: '[--yes]',
    more: '  --yes   without a prompt, for scripts',
    options: YES,
    destroys: 'This removes all events, identities, keys and secrets of the stack in this checkout.',
  },
  doctor: {
    does: 'finds what keeps the stack from running on this machine, and how to fix it',
    options: NOTHING,
    isReadOnly: true,
  },
  status: {
    does: 'checks each process: state, age, restarts, lag, reason, last error',
    usage: '[--json]',
    more: '  --json   one line for scripts\n\nExit code 1 when one does not serve, or processes run without their supervisor; 3 when no stack runs.',
    options: { json: { type: 'boolean' } },
    isReadOnly: true,
  },
  logs: {
    does: 'shows the last lines of each process; at a terminal also new ones',
    usage: '[name …]',
    options: NOTHING,
    argumentsMax: 100,
    isReadOnly: true,
  },
  test: { does: 'runs set-up, format, lint, types, then the tests against real stores', ...TESTS },
  'test:all': { does: 'runs the same with the long tests: faults, erasures, upgrade, browsers and more', ...TESTS },
  'demo-portal': {
    does: 'starts everything that does not run, plays a minute of a game, and prints the portal’s address',
    options: NOTHING,
  },
  simulate: {
    does: 'sends the traffic of a game, publishes that of a chain, or mints on it, and compares the result with the stored rows',
  },
  keys: { does: 'lists, creates, refreshes and revokes access keys; creates and disables signable keys' },
  projects: { does: 'creates and lists projects, their environments and their limits' },
  accounts: { does: 'manages access to the portal: links, invitations, roles, lost access' },
  mints: { does: 'lists and shows assets to be minted and their signers; retries failed ones' },
  collections: { does: 'links contracts of chains to projects; lists, renames and unlinks them' },
  identity: {
    does: 'shows which identities are one person, and why; splits a wrong merge; creates or rebuilds the graph',
  },
  consent: { does: 'rebuilds consents' },
  rebuild: { does: 'rebuilds everything in an emptied Redis' },
  verify: { does: 'compares stored rows with the log' },
  offsets: { does: 'shows offsets of consumers, and resolves a log that lost its end' },
  derive: { does: 'repairs tables that are derived from events' },
  'dead-letters': { does: 'lists, shows, replays and drops messages that could not be processed' },
  erasures: { does: 'lists, shows and verifies erasures; searches for remaining rows' },
  columns: { does: 'gives properties of events their own columns: adds, lists, drops them' },
  analysts: { does: 'creates, grants, lists and drops accounts for people who query the data' },
  chain: { does: 'shows how far chains are indexed, compares the history with them, changes descriptions of tokens' },
  import: { does: 'publishes activities and tokens of chains from a file of JSON lines' },
  replicate: { does: 'copies the history of a chain over HTTP, and resumes after an interruption' },
  contracts: {
    does: 'compiles the contracts of the demo chain, and writes the output',
    usage: '[--check]',
    more: '  --check   writes nothing, and ends with 1 when something differs',
    options: { check: { type: 'boolean' } },
  },
  bench: { does: 'runs the benchmarks' },
  fuzz: { does: 'posts generated batches and checks every response' },
  faults: { does: 'injects the faults that the pipeline must survive' },
  attacks: { does: 'attacks a stack as one tenant, and measures the effect on another' },
  help: { does: 'lists all commands by purpose', options: NOTHING },
  completion: { does: 'prints a script that completes these commands in bash' },
  exec: { does: 'runs an installed tool: exec <tool> …' },
  supervise: { does: 'is the process that `up` starts', options: STACK.options },
};

/** The commands by purpose. The scripts of package.json have the same order and headings. */
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

/** `npm` has two of the commands built in. */
const callOf = (name) => (name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`);

function helpOf(name) {
  const { does, usage = '', more } = COMMANDS[name];
  const lines = [
    `usage: ${callOf(name)}${usage === '' ? '' : ` -- ${usage}`}`,
    '',
    `${does[0].toUpperCase()}${does.slice(1)}.`,
  ];
  if (more !== undefined) lines.push('', more);
  return [...lines, '', 'Exit code: 0 done, 1 failed, 2 wrong arguments, 3 a dependency does not answer.'].join('\n');
}

function overview() {
  const width = COMMAND_NAMES.reduce((most, name) => Math.max(most, callOf(name).length), 0);
  const lineOf = (name) => `  ${callOf(name).padEnd(width)}  ${COMMANDS[name].does}`;
  const groups = Object.entries(GROUPS).map(([purpose, names]) => [`To ${purpose}`, ...names.map(lineOf)].join('\n'));
  return `${groups.join('\n\n')}\n\nnpm run <command> -- --help explains one.`;
}

/**
 * Checks the arguments of a call before it runs.
 * @param {string[]} argv the command's name and its arguments
 * @returns {{ code: number, text: string } | null} what to print instead of running the command; null when it may run
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
 * Prompts before a command destroys something, unless `--yes` is given.
 * @param {string[]} argv as checked by `refusalOf`
 * @returns {Promise<{ code: number, text: string } | null>} as `refusalOf`
 */
export async function confirmationOf([name = '', ...args], { input = process.stdin, output = process.stderr } = {}) {
  const { destroys } = COMMANDS[name];
  if (destroys === undefined || args.includes('--yes')) return null;
  const unchanged = 'nothing was changed';
  if (input.isTTY !== true)
    return { code: EXIT.usage, text: `${name}: ${destroys} No terminal to confirm on. Pass --yes (${unchanged}).` };
  const rl = createInterface({ input, output });
  const answer = await rl.question(`${destroys} Type yes to continue: `).finally(() => rl.close());
  return answer.trim().toLowerCase() === 'yes' ? null : { code: EXIT.failed, text: `${name}: ${unchanged}` };
}
