// All commands of `npm run`: purpose, flags and arguments, and what they destroy. Plain JavaScript and built-ins only,
// because bootstrap.mjs reads it on any Node from 18 before anything is installed. A typing error must not install 700
// MB first, nor remove anything.
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

/** Exit codes of every command here, of the operator's, and of bench, fuzz and faults. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unreachable: 3, emptied: 4 };

const NOTHING = {};
const YES = { yes: { type: 'boolean' } };
const STACK = {
  usage: '[--no-chain]',
  more: '  --no-chain   without a chain of its own',
  options: { 'no-chain': { type: 'boolean' } },
};
const TESTS = {
  usage: '[path …] [-t title]',
  options: { testNamePattern: { type: 'string', short: 't' } },
  words: 1000,
};

/**
 * `options`: flags for `parseArgs`; `words`: number of other arguments. A command without `options` (the operator's
 * commands, simulate, bench, fuzz, faults, attacks, tools) checks its arguments itself before it does anything.
 * `looks`: the command changes nothing, so nothing is installed for it.
 */
const COMMANDS = {
  start: {
    does: 'installs what is missing, starts everything, proves it with one event, stays until Ctrl-C',
    ...STACK,
  },
  up: { does: 'starts everything detached, and returns when one event has made the round trip', ...STACK },
  down: { does: 'drains and stops everything; the data stays', options: NOTHING },
  reset: {
    does: 'stops everything and REMOVES the data, the secrets and the keys; asks first',
    usage: '[--yes]',
    more: '  --yes   without asking, for scripts',
    options: YES,
    destroys: 'This removes all events, identities, keys and secrets of the stack in this checkout.',
  },
  doctor: {
    does: 'says what of the machine keeps the stack from running, and how to mend it',
    options: NOTHING,
    looks: true,
  },
  status: {
    does: 'asks each process whether it serves: state, age, restarts, lag, why not, last error',
    usage: '[--json]',
    more: '  --json   one line for scripts\n\nExit code 1 when one does not serve, or processes run without their supervisor; 3 when no stack runs.',
    options: { json: { type: 'boolean' } },
    looks: true,
  },
  logs: {
    does: 'shows the last lines of each process; at a terminal also what follows',
    usage: '[name …]',
    options: NOTHING,
    words: 100,
    looks: true,
  },
  test: { does: 'runs set-up, format, lint, types, then the tests against real stores', ...TESTS },
  'test:all': { does: 'runs the same with the long tests: faults, erasures, upgrade, browsers and more', ...TESTS },
  'demo-portal': {
    does: 'starts everything that does not run, plays a minute of a game, and says where the portal is',
    options: NOTHING,
  },
  simulate: {
    does: 'posts the traffic of a game, publishes that of a chain, or mints on it, and reconciles it with what is stored or served',
  },
  keys: { does: 'lists, creates, refreshes and revokes access keys; makes and disables keys that sign' },
  projects: { does: 'creates and lists projects, their environments and their limits' },
  accounts: { does: 'lets people into the portal: links, invitations, roles, lost access' },
  mints: { does: 'lists and shows assets to be minted, and who signs them; accepts failed ones again' },
  collections: { does: 'links contracts of chains to projects; lists, renames and unlinks them' },
  identity: { does: 'says who is one person, and why; splits a wrong merge; sets up or puts back the identity graph' },
  consent: { does: 'puts back consents' },
  rebuild: { does: 'puts back all that an emptied Redis held' },
  verify: { does: 'compares what is stored with the log' },
  offsets: { does: 'shows where consumers stand, and decides for a log that lost its end' },
  derive: { does: 'makes the tables that follow from events say what events say' },
  'dead-letters': { does: 'lists, shows, replays and drops what could not be processed' },
  erasures: { does: 'lists, shows and verifies erasures; looks for what is left of them' },
  columns: { does: 'gives properties of events columns of their own: adds, lists, drops them' },
  analysts: { does: 'creates, grants, lists and drops accounts for people who ask questions of the data' },
  chain: { does: 'shows how far chains are indexed, compares the history with them, changes what is said of tokens' },
  import: { does: 'publishes activities and tokens of chains from a file of JSON lines' },
  replicate: { does: 'copies the history of a chain over HTTP, and goes on where it was' },
  contracts: {
    does: 'compiles the contracts of the demo chain, and writes what comes out',
    usage: '[--check]',
    more: '  --check   writes nothing, and ends with 1 when something differs',
    options: { check: { type: 'boolean' } },
  },
  bench: { does: 'takes the figures' },
  fuzz: { does: 'posts generated batches and judges every answer' },
  faults: { does: 'tries the faults that the pipeline must survive' },
  attacks: { does: 'attacks a stack as one tenant, and measures what another one sees' },
  help: { does: 'says what commands there are, by what one wants to do', options: NOTHING },
  completion: { does: 'prints a script that completes these commands in bash' },
  exec: { does: 'runs an installed tool: exec <tool> …' },
  supervise: { does: 'what `up` starts', options: STACK.options },
};

/** The commands, grouped by purpose. The scripts of package.json are in this order under the same headings. */
const GROUPS = {
  'run the stack': ['start', 'up', 'down', 'status', 'logs', 'doctor', 'reset', 'help', 'completion'],
  'see it work': ['simulate', 'demo-portal'],
  'say who may do what': ['projects', 'keys', 'accounts', 'collections', 'analysts'],
  'look after people': ['identity', 'consent', 'erasures'],
  'work with the data': ['columns', 'import', 'replicate', 'chain', 'mints'],
  'find and mend what went wrong': ['verify', 'derive', 'dead-letters', 'offsets', 'rebuild'],
  develop: ['test', 'test:all', 'contracts', 'bench', 'fuzz', 'faults', 'attacks'],
};
export const COMMAND_NAMES = Object.values(GROUPS).flat();

/** Whether a command changes nothing. A command that reports the state of the machine must not change it. */
export const onlyLooks = ([name = '']) => COMMANDS[name].looks === true;

/** How to call a command through npm, which has two of them built in. */
const calledAs = (name) => (name === 'start' || name === 'test' ? `npm ${name}` : `npm run ${name}`);

function helpOf(name) {
  const { does, usage = '', more } = COMMANDS[name];
  const words = usage === '' ? '' : ` -- ${usage}`;
  const lines = [`usage: ${calledAs(name)}${words}`, '', `${does[0].toUpperCase()}${does.slice(1)}.`];
  if (more !== undefined) lines.push('', more);
  return [
    ...lines,
    '',
    'Exit code: 0 done, 1 it failed, 2 wrong arguments, 3 something it needs does not answer.',
  ].join('\n');
}

function overview() {
  const width = COMMAND_NAMES.map((name) => calledAs(name).length).reduce(
    (most, each) => Math.max(most, each),
    Number.NEGATIVE_INFINITY,
  );
  const lineOf = (name) => `  ${calledAs(name).padEnd(width)}  ${COMMANDS[name].does}`;
  const groups = Object.entries(GROUPS).map(([wish, names]) => [`To ${wish}`, ...names.map(lineOf)].join('\n'));
  return `${groups.join('\n\n')}\n\nnpm run <command> -- --help tells more of one.`;
}

/**
 * Checks the arguments of a call before anything is done.
 * @param {string[]} argv the command's name and its arguments
 * @returns {{ code: number, text: string } | null} what to print instead of running it; null when it may run
 */
export function refusalOf([name = '', ...args]) {
  if (name === '--help' || (name === 'help' && args.length === 0)) return { code: EXIT.ok, text: overview() };
  if (!Object.hasOwn(COMMANDS, name)) {
    const text = name === '' ? overview() : `unknown command '${name}' (see npm run help)`;
    return { code: EXIT.usage, text };
  }
  const { options, words = 0 } = COMMANDS[name];
  if (options === undefined) return null;
  if (args.includes('--help') || args.includes('-h')) return { code: EXIT.ok, text: helpOf(name) };
  try {
    const { positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    if (positionals.length > words) throw new Error(`unexpected word '${positionals[words]}'`);
    return null;
  } catch (error) {
    const [reason] = error.message.split('. ');
    return { code: EXIT.usage, text: `${name}: ${reason} (see ${calledAs(name)} -- --help)` };
  }
}

/**
 * Asks before a command destroys something. Without a terminal, `--yes` is the answer.
 * @param {string[]} argv as for `refusalOf`, which has checked it
 * @returns {Promise<{ code: number, text: string } | null>} what to print instead of running it; null when it may run
 */
export async function consentTo([name = '', ...args], { input = process.stdin, output = process.stderr } = {}) {
  const { destroys } = COMMANDS[name];
  if (destroys === undefined || args.includes('--yes')) return null;
  const untouched = 'nothing was touched';
  if (input.isTTY !== true)
    return {
      code: EXIT.usage,
      text: `${name}: ${destroys} There is no terminal to confirm at: use --yes (${untouched})`,
    };
  const lines = createInterface({ input, output });
  const answer = await lines.question(`${destroys} Type yes to continue: `).finally(() => lines.close());
  return answer.trim().toLowerCase() === 'yes' ? null : { code: EXIT.failed, text: `${name}: ${untouched}` };
}
