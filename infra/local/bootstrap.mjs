// The first step of every command, in plain JavaScript for Node 18 and later: checks the arguments, finds or installs
// Node 24 and the locked packages, and runs main.ts. It installs only into the checkout.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { confirmationOf, isReadOnly, refusalOf } from './command-table.mjs';

const checkout = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
const main = join(checkout, 'infra', 'local', 'main.ts');
const download = join(checkout, 'infra', 'local', 'early-download.ts');
const STARTS_STORES = new Set(['start', 'up', 'test', 'test:all', 'bench', 'faults', 'attacks']);
/** Installed if the machine's Node is older; see infra/decisions/0018-local-stack.md. */
const NODE_VERSION = '24.21.0';
const NODE_MIN = [24, 11];

const report = (line) => process.stderr.write(`${line}\n`);

/** Removes URLs, because output must not contain the address of the npm registry. */
const redactUrls = (chunk) => String(chunk).replace(/\bhttps?:\/\/[^\s'")\]]+/g, '<address>');

class Refusal extends Error {}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
}

/**
 * Runs a program until it exits, prints its output and forwards signals.
 * @returns {Promise<{code: number, error?: string}>}
 */
function run(program, args, options = {}) {
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: 'inherit', ...options });
    child.stdout?.on('data', (chunk) => process.stderr.write(redactUrls(chunk)));
    child.stderr?.on('data', (chunk) => process.stderr.write(redactUrls(chunk)));
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    const forward = (signal) => child.kill(signal);
    for (const signal of signals) process.on(signal, forward);
    const finish = (result) => {
      for (const signal of signals) process.off(signal, forward);
      done(result);
    };
    child.once('error', (error) => finish({ code: 127, error: error.message }));
    child.once('exit', (code, signal) => finish({ code: code ?? 128 + (constants.signals[signal] ?? 0) }));
  });
}

/** Returns the environment for npm, with the selected Node first in PATH and the cache in the checkout. */
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

/** Runs npm. Its output goes to standard error; standard output is reserved for the command (`exec`, JSON lines). */
async function npm(node, args, cwd) {
  // Under `npm start`, uses the same npm; otherwise, uses the npm in PATH.
  const npmScript = process.env.npm_execpath;
  const options = { cwd, env: npmEnvironment(node), stdio: ['ignore', 'pipe', 'pipe'] };
  const isScriptUsable = npmScript !== undefined && /npm-cli\.c?js$/.test(npmScript) && existsSync(npmScript);
  const result = isScriptUsable ? await run(node, [npmScript, ...args], options) : await run('npm', args, options);
  const { code, error } = result;
  if (error !== undefined)
    throw new Refusal(`npm could not be run (${error}). Install npm; on Debian: sudo apt-get install -y npm`);
  if (code !== 0) throw new Refusal(`npm ${args[0]} failed with exit code ${code}; see its messages above`);
}

/** Returns the path of a suitable Node: this process's Node, or the Node in `.playline/node`, installed if absent. */
async function findNode(args) {
  if (isNewEnough(process.version)) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(checkout, '.playline', 'node');
  const binary = join(folder, 'node_modules', name, 'bin', 'node');
  const stamp = join(folder, 'version');
  if (existsSync(binary) && existsSync(stamp) && readFileSync(stamp, 'utf8') === NODE_VERSION) return binary;
  if (isReadOnly(args)) throw new Refusal(toMissingMessage(args, `Node ${NODE_MIN.join('.')} or newer`));
  report(
    `Node ${process.version} is older than ${NODE_MIN.join('.')}: installing Node ${NODE_VERSION} into .playline/node`,
  );
  mkdirSync(folder, { recursive: true });
  // With a separate package.json, npm does not install into the checkout's project.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--loglevel=error'];
  await npm(process.execPath, ['install', ...flags, `${name}@${NODE_VERSION}`], folder);
  if (!existsSync(binary)) throw new Refusal(`${name}@${NODE_VERSION} has no bin/node`);
  writeFileSync(stamp, NODE_VERSION);
  return binary;
}

const versionOf = (node) => (node === process.execPath ? process.version : `v${NODE_VERSION}`);

/** Returns the error message of a read-only command, which installs nothing. */
const toMissingMessage = ([name], what) => `${name} requires ${what}. Run \`npm start\` first`;

async function installPackages(node, args) {
  const stampFile = join(checkout, 'node_modules', '.playline-stamp');
  const lock = readFileSync(join(checkout, 'package-lock.json'));
  const stamp = createHash('sha256')
    .update(lock)
    // Native optional packages depend on the Node version.
    .update(`${versionOf(node)} ${process.platform} ${process.arch}`)
    .digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
  if (isReadOnly(args))
    throw new Refusal(toMissingMessage(args, "the project's packages, which are missing or outdated"));
  report(
    'installing the locked packages (npm ci); the first time includes the ClickHouse engine, about 550 MB on disk',
  );
  // Stores do not come from npm, so they are downloaded in parallel. The command itself retries and reports failures.
  const early = STARTS_STORES.has(args[0]) ? run(node, [download], { stdio: ['ignore', 'ignore', 'inherit'] }) : null;
  try {
    // Install scripts of these packages only build optional native code.
    await npm(node, ['ci', '--ignore-scripts', '--loglevel=error'], checkout);
  } finally {
    await early;
  }
  writeFileSync(stampFile, stamp);
}

/** Runs a command. @returns the exit code, or undefined if this process itself runs the command */
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
