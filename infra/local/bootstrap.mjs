// The first step of every command, in plain JavaScript for any Node from 18: checks the arguments, finds or installs
// Node 24 and the locked packages, and continues with main.ts. It installs only below the checkout.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { confirmationOf, isReadOnly, refusalOf } from './command-table.mjs';

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
const main = join(checkout, 'infra', 'local', 'main.ts');
const provisions = join(checkout, 'infra', 'local', 'provide-early.ts');
const STARTS_STORES = new Set(['start', 'up', 'test', 'test:all', 'bench', 'faults', 'attacks']);
/** Installed when the machine's own Node is older; infra/decisions/0018-local-stack.md. */
const NODE_VERSION = '24.21.0';
const NODE_MIN = [24, 11];

const report = (line) => process.stderr.write(`${line}\n`);

/** Output must not show the address of the npm registry. */
const withoutAddresses = (chunk) => String(chunk).replace(/\bhttps?:\/\/[^\s'")\]]+/g, '<address>');

class Refusal extends Error {}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
}

/**
 * Runs a program to its end, shows its output and forwards signals.
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

/** Environment for npm, with its Node first in PATH and a cache in the checkout. */
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

/** npm's output goes to standard error, because standard output belongs to the command (`exec`, JSON lines). */
async function npm(node, args, cwd) {
  // Under `npm start` the same npm is used; otherwise the one in PATH.
  const own = process.env.npm_execpath;
  const options = { cwd, env: npmEnvironment(node), stdio: ['ignore', 'pipe', 'pipe'] };
  const isOwnUsable = own !== undefined && /npm-cli\.c?js$/.test(own) && existsSync(own);
  const { code, fault } = isOwnUsable ? await run(node, [own, ...args], options) : await run('npm', args, options);
  if (fault !== undefined)
    throw new Refusal(`npm is needed and could not be run (${fault}); on Debian: sudo apt-get install -y npm`);
  if (code !== 0) throw new Refusal(`npm ${args[0]} ended with ${code}; its messages are above`);
}

/** Path of a Node that is new enough: that of this process, or the one in `.playline/node`, installed when absent. */
async function findNode(args) {
  if (isNewEnough(process.version)) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(checkout, '.playline', 'node');
  const binary = join(folder, 'node_modules', name, 'bin', 'node');
  const stamp = join(folder, 'version');
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, 'utf8') === NODE_VERSION) return binary;
  if (isReadOnly(args)) throw new Refusal(missingOf(args, `Node ${NODE_MIN.join('.')} or newer`));
  report(
    `Node ${process.version} is older than ${NODE_MIN.join('.')}: installing Node ${NODE_VERSION} into .playline/node`,
  );
  mkdirSync(folder, { recursive: true });
  // With its own package.json npm does not install into the checkout's project.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--loglevel=error'];
  await npm(process.execPath, ['install', ...flags, `${name}@${NODE_VERSION}`], folder);
  if (!existsSync(binary)) throw new Refusal(`${name}@${NODE_VERSION} has no bin/node`);
  writeFileSync(stamp, NODE_VERSION);
  return binary;
}

const versionOf = (node) => (node === process.execPath ? process.version : `v${NODE_VERSION}`);

/** Message of a command that installs nothing. */
const missingOf = ([name], what) => `${name} needs ${what}, and installs nothing itself: run \`npm start\``;

async function installPackages(node, args) {
  const stampFile = join(checkout, 'node_modules', '.playline-stamp');
  const lock = readFileSync(join(checkout, 'package-lock.json'));
  const stamp = createHash('sha256')
    .update(lock)
    // Native optional packages bind to the version of Node.
    .update(`${versionOf(node)} ${process.platform} ${process.arch}`)
    .digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  if (isReadOnly(args)) throw new Refusal(missingOf(args, "the project's packages, which are missing or outdated"));
  report(
    'installing the locked packages (npm ci); the first time includes the ClickHouse engine, about 550 MB on disk',
  );
  // Stores do not come from npm, so both are downloaded in parallel. The command repeats and reports a failed download.
  const early = STARTS_STORES.has(args[0]) ? run(node, [provisions], { stdio: ['ignore', 'ignore', 'inherit'] }) : null;
  try {
    // Packages with install scripts only build optional speed-ups.
    await npm(node, ['ci', '--ignore-scripts', '--loglevel=error'], checkout);
  } finally {
    await early;
  }
  writeFileSync(stampFile, stamp);
}

/** @returns the exit code, or nothing when this process continues as the command */
async function runCommand(args) {
  const refusal = refusalOf(args) ?? (await confirmationOf(args));
  if (refusal !== null) {
    (refusal.code === 0 ? console.log : console.error)(refusal.text);
    return refusal.code;
  }
  const node = await findNode(args);
  await installPackages(node, args);
  if (node === process.execPath) {
    await import(main);
    return undefined;
  }
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  return (await run(node, [main, ...args], { env })).code;
}

try {
  const code = await runCommand(process.argv.slice(2));
  if (code !== undefined) process.exitCode = code;
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  report(error.message);
  process.exitCode = 1;
}
