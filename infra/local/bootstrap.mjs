// The first step of every command: plain JavaScript and built-ins only, because it must run on any Node from 18.
// It refuses wrong words and asks before something is destroyed, before it does anything else. Then it finds or
// installs Node 24, installs the locked packages with it, and hands over to main.ts. Everything it makes stays in the
// checkout: `.playline/node`, `.playline/npm-cache` and `node_modules`.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consentTo, onlyLooks, refusalOf } from './command-table.mjs';

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
const main = join(checkout, 'infra', 'local', 'main.ts');
const provisions = join(checkout, 'infra', 'local', 'provide-early.ts');
/** Commands that start stores. */
const STARTS_STORES = new Set(['start', 'up', 'test', 'test:all', 'bench', 'faults', 'attacks']);
/** Installed when the machine's own Node is older; infra/decisions/0018-local-stack.md. */
const NODE_VERSION = '24.21.0';
/** First version whose type stripping, fetch and test tools meet the needs of the project. */
const NODE_MIN = [24, 11];

const say = (line) => process.stderr.write(`${line}\n`);

/** The registry is a setting of the machine, so our output does not show its address. */
const withoutAddresses = (chunk) => String(chunk).replace(/\bhttps?:\/\/[^\s'")\]]+/g, '<address>');

class Refusal extends Error {}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
}

/**
 * Runs a program to its end and shows its output. SIGINT, SIGTERM and SIGHUP are passed on, and the wait goes on,
 * because the program decides when it is done.
 * @returns {Promise<{code: number, fault?: string}>}
 */
function run(program, args, options = {}) {
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: 'inherit', ...options });
    child.stdout?.on('data', (chunk) => process.stderr.write(withoutAddresses(chunk)));
    child.stderr?.on('data', (chunk) => process.stderr.write(withoutAddresses(chunk)));
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    const pass = (signal) => child.kill(signal);
    for (const signal of signals) process.on(signal, pass);
    const finish = (result) => {
      for (const signal of signals) process.off(signal, pass);
      done(result);
    };
    child.once('error', (error) => finish({ code: 127, fault: error.message }));
    child.once('exit', (code, signal) => finish({ code: code ?? 128 + (constants.signals[signal] ?? 0) }));
  });
}

/** Environment for npm, with its Node first in PATH and its cache in the checkout instead of HOME. */
function npmEnvironment(node) {
  return {
    ...process.env,
    PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}`,
    npm_config_cache: join(checkout, '.playline', 'npm-cache'),
    npm_config_update_notifier: 'false',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
  };
}

/** npm writes its results to standard output; ours belongs to the command that runs after it (`exec`, JSON lines). */
async function npm(node, args, cwd) {
  // Under `npm start` the same npm serves again; otherwise the one in PATH.
  const own = process.env.npm_execpath;
  const options = { cwd, env: npmEnvironment(node), stdio: ['ignore', 'pipe', 'pipe'] };
  const isOwnUsable = own !== undefined && /npm-cli\.c?js$/.test(own) && existsSync(own);
  const { code, fault } = isOwnUsable ? await run(node, [own, ...args], options) : await run('npm', args, options);
  if (fault !== undefined)
    throw new Refusal(`npm is needed and could not be run (${fault}); on Debian: sudo apt-get install -y npm`);
  if (code !== 0) throw new Refusal(`npm ${args[0]} ended with ${code}; its messages are above`);
}

/** Path of a Node that is new enough: this process's own, or the one in `.playline/node`, installed when absent. */
async function findNode(words) {
  if (isNewEnough(process.version)) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(checkout, '.playline', 'node');
  const binary = join(folder, 'node_modules', name, 'bin', 'node');
  const stamp = join(folder, 'version');
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, 'utf8') === NODE_VERSION) return binary;
  if (onlyLooks(words)) throw new Refusal(lookingNeeds(words, `Node ${NODE_MIN.join('.')} or newer, which is missing`));
  say(
    `Node ${process.version} is older than ${NODE_MIN.join('.')}: installing Node ${NODE_VERSION} into .playline/node`,
  );
  mkdirSync(folder, { recursive: true });
  // With its own package.json npm does not install into the checkout's project.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--loglevel=error'];
  await npm(process.execPath, ['install', ...flags, `${name}@${NODE_VERSION}`], folder);
  if (!existsSync(binary)) throw new Refusal(`${name}@${NODE_VERSION} brought no bin/node`);
  writeFileSync(stamp, NODE_VERSION);
  return binary;
}

/** Native optional packages bind to the Node that installed them, so its version belongs to the stamp. */
function versionOf(node) {
  return node === process.execPath ? process.version : `v${NODE_VERSION}`;
}

/** For a command that changes nothing: what is missing, and the command that installs it. */
const lookingNeeds = ([name], what) => `${name} only looks, and needs ${what}: \`npm start\` installs what is missing`;

async function installPackages(node, words) {
  const stampFile = join(checkout, 'node_modules', '.playline-stamp');
  const lock = readFileSync(join(checkout, 'package-lock.json'));
  const stamp = createHash('sha256')
    .update(lock)
    .update(`${versionOf(node)} ${process.platform} ${process.arch}`)
    .digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  if (onlyLooks(words))
    throw new Refusal(lookingNeeds(words, "the project's packages, which are missing or of another version"));
  say('installing the locked packages (npm ci); the first time brings the ClickHouse engine, about 550 MB on disk');
  // What the stores need does not come from npm, so both are fetched at once. A fault of the first is left to the
  // command, which meets it again and says how to mend it.
  const early = STARTS_STORES.has(words[0])
    ? run(node, [provisions], { stdio: ['ignore', 'ignore', 'inherit'] })
    : null;
  try {
    // No package here needs an install script: those that have one only build optional speed-ups.
    await npm(node, ['ci', '--ignore-scripts', '--loglevel=error'], checkout);
  } finally {
    await early;
  }
  writeFileSync(stampFile, stamp);
}

/** Runs the named command. @returns its exit code, or nothing when this process continues as the command */
async function runCommand(words) {
  const refusal = refusalOf(words) ?? (await consentTo(words));
  if (refusal !== null) {
    (refusal.code === 0 ? console.log : console.error)(refusal.text);
    return refusal.code;
  }
  const node = await findNode(words);
  await installPackages(node, words);
  if (node === process.execPath) {
    await import(main);
    return undefined;
  }
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  return (await run(node, [main, ...words], { env })).code;
}

try {
  const code = await runCommand(process.argv.slice(2));
  if (code !== undefined) process.exitCode = code;
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
}
