import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ConfigError, parseConfig } from '@playline/runtime';
import type { z } from 'zod';
import { chainSettings, signingSettings } from '../chain.ts';
import { endOrphans } from '../children.ts';
import { runCommand } from '../command.ts';
import { EXIT } from '../command-table.mjs';
import { assertSameNodes, assertSameTopics } from '../deployment.ts';
import { logFileOf, type StackPaths } from '../paths.ts';
import { configuredPort } from '../ports.ts';
import { createProgress, exitReport, silenceReport, stackReport } from '../report.ts';
import { verifyRoundTrip } from '../round-trip.ts';
import { createSignerKeys, signerPublicKeyOf } from '../secrets.ts';
import {
  environmentWithoutStores,
  isStoreSetting,
  SERVICES,
  type ServiceEntry,
  type ServiceName,
} from '../services.ts';
import { startStack } from '../stack.ts';
import { readStackFile, type StackFile, secretKeyHeaderOf, sharedSettingsOf } from '../stack-file.ts';
import { allPortNames, nodeCountsOf, type Stack } from '../stack-options.ts';
import { claimSupervision, findSupervisor, releaseSupervision } from '../supervisor.ts';

/** An idle broker wakes 200 times per second for timers. Services must apply key revocations within a second. */
const TIMER_SLACK_MS = { stores: 100, services: 10 };

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface Supervision {
  report: (line: string) => void;
  /** Arguments of `start` and `up`. */
  args: readonly string[];
  /** Called when all processes are ready, before the test event. */
  onServing?: () => void;
  onReady: (stack: Stack) => void;
}

/** Returns the services in `--services`, which may not exist, or null for all services. */
function namesIn(args: readonly string[]): readonly string[] | null {
  const { services } = parseArgs({ args: [...args], options: { services: { type: 'string' } }, strict: false }).values;
  if (typeof services !== 'string') return null;
  return services === 'none' ? [] : services.split(',');
}

/** Selects what to start. A stack without chain services needs no chain. */
function toSelection(args: readonly string[]) {
  const names = namesIn(args);
  const withChain = !args.includes('--no-chain');
  const cluster = args.includes('--cluster');
  if (names === null) return { chain: withChain, cluster };
  const services = (SERVICES as readonly ServiceEntry[]).filter(({ name }) => names.includes(name));
  return {
    cluster,
    services: services.map(({ name }) => name as ServiceName),
    chain: withChain && services.some(({ needsChain }) => needsChain === true),
    createsTables: true,
  };
}

async function superviseUntilSignal(supervision: Supervision): Promise<void> {
  const { report } = supervision;
  const stopRequest = new AbortController();
  const signalled = new Promise<void>((done) => {
    // One Ctrl-C arrives up to three times (from the terminal, npm and the bootstrap); the first signal starts the
    // shutdown.
    for (const signal of STOP_SIGNALS)
      process.on(signal, () => {
        stopRequest.abort();
        done();
      });
  });
  let stack: Stack | null = null;
  try {
    stack = await startStack({
      report,
      onExit: (exit) => report(exitReport(exit)),
      onSilence: (silence) => report(silenceReport(silence)),
      signal: stopRequest.signal,
      isLenient: true,
      timerSlackMs: TIMER_SLACK_MS,
      ...toSelection(supervision.args),
    });
    if (!stopRequest.signal.aborted) {
      supervision.onServing?.();
      if (namesIn(supervision.args) === null) await Promise.race([postTestEvent(stack, report), signalled]);
      if (!stopRequest.signal.aborted) supervision.onReady(stack);
    }
    await signalled;
  } catch (error) {
    if (!stopRequest.signal.aborted) throw error;
  } finally {
    await stack?.stop();
  }
  report('stopped');
}

/** Sends the test event. A failure does not stop a stack that is known to be incomplete. */
async function postTestEvent(stack: Stack, report: (line: string) => void): Promise<void> {
  report('posting a test event and reading it from ClickHouse');
  try {
    const latencyMs = await verifyRoundTrip(stack.file);
    report(`the test event was in ClickHouse ${latencyMs.toFixed()} ms after it was accepted`);
  } catch (error) {
    if (stack.missing.length === 0) throw error;
    report(`the test event is not in ClickHouse: ${(error as Error).message}`);
  }
}

/**
 * Runs this process as the checkout's supervisor until the stack is stopped.
 * @returns false if another supervisor is running
 */
export async function supervise(paths: StackPaths, supervision: Supervision): Promise<boolean> {
  if (claimSupervision(paths) !== null) return false;
  try {
    const orphans = await endOrphans(paths, supervision.report);
    if (orphans.length > 0) supervision.report(`stopped processes of a dead supervisor: ${orphans.join(', ')}`);
    await superviseUntilSignal(supervision);
  } finally {
    releaseSupervision(paths);
  }
  return true;
}

/** Returns the message for a start while the stack is running. */
export function alreadyRunningMessage(paths: StackPaths): string {
  const file = readStackFile(paths);
  const hint = 'the stack of this checkout is already running; `npm run down` stops it';
  return file === null ? `${hint} (currently starting or stopping)` : `${hint}\n${stackReport(paths, file)}`;
}

/** Prints invalid settings to standard error and ignored settings to standard output. @returns true if all are valid */
export async function hasValidSettings(paths: StackPaths, args: readonly string[]): Promise<boolean> {
  const cluster = args.includes('--cluster');
  const errors = [...findUnknownServices(args), ...(await findInvalidSettings(paths, process.env, { cluster }))];
  for (const error of errors) console.error(error);
  if (errors.length > 0) return false;
  const ignored = await ignoredSettingsSentence(paths, process.env);
  if (ignored !== null) console.log(ignored);
  return true;
}

function findUnknownServices(args: readonly string[]): string[] {
  const known: readonly string[] = SERVICES.map(({ name }) => name);
  const unknown = (namesIn(args) ?? []).filter((name) => !known.includes(name));
  return unknown.map((name) => `--services: there is no service ${name}, only ${known.join(', ')}`);
}

/** @returns the first administrator's link, or null if the stack has no portal or already has an administrator */
export const firstLinkOf = async (paths: StackPaths, file: StackFile | null): Promise<string | null> =>
  file?.portal === undefined ? null : createFirstLink(paths);

/** Prints the link to this terminal but not to a log, because anyone with the link can become administrator. */
export function reportLink(link: string | null): void {
  if (link !== null)
    console.log(`  The portal has no administrator yet. The first person to open this link becomes the administrator (valid once, for 15 minutes):
    ${link}
  For another link, run: npm run accounts -- link
`);
}

/** Reports a demo mint. Called after the summary is printed, because a mint becomes final only some blocks later. */
async function reportMint(file: StackFile): Promise<void> {
  try {
    const mint = await verifyMint(file);
    if (mint === null) return;
    const seconds = (ms: number) => (ms / 1000).toFixed(1);
    console.log(
      `  Minted a demo ERC-721 token: succeeded after ${seconds(mint.succeededMs)} s in transaction ` +
        `${mint.transactionHash},\n  in the activity history after ${seconds(mint.shownMs)} s as activity ${mint.activityId}.\n`,
    );
  } catch (error) {
    console.log(`  The demo mint failed: ${(error as Error).message}\n`);
  }
}

export async function start(paths: StackPaths, args: readonly string[]): Promise<number> {
  if (findSupervisor(paths) === null && !(await hasValidSettings(paths, args))) return EXIT.usage;
  const didRun = await supervise(paths, {
    report: createProgress((line) => console.log(line)),
    args,
    onReady: ({ file, missing }) => {
      console.log(`${stackReport(paths, file)}\n  Press Ctrl-C to stop the stack.\n`);
      for (const sentence of missing) console.log(`  ${sentence}\n`);
      void firstLinkOf(paths, file).then(reportLink);
      void reportMint(file);
    },
  });
  if (!didRun) console.log(alreadyRunningMessage(paths));
  return didRun ? 0 : 1;
}

/** @returns null if an administrator exists or the command fails; `npm run accounts -- link` reports the reason */
async function createFirstLink(paths: StackPaths): Promise<string | null> {
  const main = join(paths.checkout, 'services', 'operator', 'src', 'main.ts');
  // The command finds the stack through its working directory.
  const folder = dirname(paths.state);
  const env = { ...environmentWithoutStores(), ...sharedSettingsOf(process.env) };
  try {
    const args = [main, 'accounts', 'link', '--json'];
    const output = await runCommand(process.execPath, args, { folder, env, logFile: logFileOf(paths, 'operator') });
    return (JSON.parse(output) as { link: string }).link;
  } catch {
    return null;
  }
}

const FINAL_MAX_MS = 120_000;
const POLL_MS = 250;

interface MintRequest {
  readonly status: string;
  readonly transaction_hash: string | null;
  readonly activity_id: string | null;
  readonly error: { readonly message: string } | null;
}

/**
 * Requests one token of the demo project's ERC-721 and waits until the mint is final and in the activity history.
 * @returns durations since the 202 response, or null if the stack has no chain
 * @throws Error if the request is refused, fails, or times out
 */
export async function verifyMint(file: StackFile, wallClockMs: () => number = Date.now) {
  const { chain, chainApi, chains = [], keys } = file;
  const [served] = chains;
  if (chain === undefined || chainApi === undefined || served === undefined || keys === undefined) return null;
  const chainUrl = `${chainApi}/v1/chains/${served.name}`;
  const contract = chain.contracts.erc721;
  const mintsUrl = `${chainUrl}/collections/${contract}/nfts/mint-requests`;
  const headers = { [secretKeyHeaderOf(file)]: keys.development.secret };
  const referenceId = `start-${randomUUID()}`;
  const assets = [{ reference_id: referenceId, owner_address: chain.signer }];
  // A minute is subtracted, because the node has its own clock.
  const fromIndexedAt = new Date(wallClockMs() - 60_000).toISOString();
  await fetchJson(mintsUrl, { method: 'POST', headers, body: JSON.stringify({ assets }) });
  const acceptedAtMs = performance.now();
  const request = await waitFor('the mint is not final', async () => {
    const found = await fetchJson<{ result: MintRequest[] }>(`${mintsUrl}/${referenceId}`, { headers });
    const [first] = found.result;
    if (first?.status === 'failed') throw new Error(`the mint failed: ${first.error?.message}`);
    return first?.status === 'succeeded' ? first : null;
  });
  const succeededMs = performance.now() - acceptedAtMs;
  const filter = { contract_address: contract, activity_type: 'mint', from_indexed_at: fromIndexedAt };
  const query = new URLSearchParams(filter);
  await waitFor('the mint is not in the activity history', async () => {
    const { result } = await fetchJson<{ result: { id: string }[] }>(`${chainUrl}/activity-history?${query}`);
    return result.find(({ id }) => id === request.activity_id) ?? null;
  });
  const { transaction_hash: transactionHash, activity_id: activityId } = request;
  return { transactionHash, activityId, succeededMs, shownMs: performance.now() - acceptedAtMs };
}

async function fetchJson<T>(url: string, { headers, ...init }: RequestInit = {}): Promise<T> {
  const response = await fetch(url, {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the chain API responded with ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as T;
}

async function waitFor<T>(problem: string, read: () => Promise<T | null>): Promise<T> {
  const startedAtMs = performance.now();
  for (;;) {
    const found = await read();
    if (found !== null) return found;
    if (performance.now() - startedAtMs > FINAL_MAX_MS) throw new Error(`${problem} after ${FINAL_MAX_MS / 1000} s`);
    await delay(POLL_MS);
  }
}

type Environment = Record<string, string | undefined>;

/** Placeholders for settings that the stack sets, so that all other settings can be checked before the start. */
const PLACEHOLDERS: Record<string, string> = {
  KAFKA_BROKERS: '127.0.0.1:1',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
  REDIS_URL: 'redis://127.0.0.1:1',
  IDENTITY_CELLS: '0',
  CLICKHOUSE_URL: 'http://127.0.0.1:1',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_PASSWORD: 'x',
  CLICKHOUSE_DATABASE: 'playline',
  IDENTITY_PEPPER: '00'.repeat(32),
  ...chainSettings({ cursorSecret: '00'.repeat(32) }, 1),
  SIGNER_PUBLIC_KEY: signerPublicKeyOf({ signerKeys: createSignerKeys() }),
  ...signingSettings({ signerKeys: createSignerKeys() }),
  PORTAL_SECRET: '00'.repeat(32),
  ANALYST_ACCOUNTS: 'analyst_1=x',
  PORTAL_ORIGIN: 'http://localhost:1',
  GATEWAY_URL: 'http://127.0.0.1:1',
  CHAIN_API_URL: 'http://127.0.0.1:1',
  CONSUMER_GROUP: 'stack',
  LINKER_GROUP: 'stack',
  WRITER_GROUP: 'stack',
  HTTP_HOST: '127.0.0.1',
  HTTP_PORT: '1',
  ADMIN_HOST: '127.0.0.1',
  ADMIN_PORT: '1',
};

const isSetByStack = (name: string) => isStoreSetting(name) || Object.hasOwn(PLACEHOLDERS, name);

/** Loads the configuration schemas by path, because infra must not import services. */
async function schemasOf(paths: StackPaths): Promise<z.ZodObject[]> {
  const modules = SERVICES.map(({ name }) => import(join(paths.checkout, 'services', name, 'src', 'config.ts')));
  return (await Promise.all(modules)).map(({ configSchema }) => configSchema);
}

/** @returns a sentence that lists the environment variables ignored by the stack, or null */
export async function ignoredSettingsSentence(paths: StackPaths, environment: Environment): Promise<string | null> {
  const known = new Set((await schemasOf(paths)).flatMap(({ shape }) => Object.keys(shape)));
  const isIgnored = (name: string) => known.has(name) && isSetByStack(name) && environment[name] !== '';
  const names = Object.keys(environment).filter(isIgnored);
  if (names.length === 0) return null;
  const ports = names.some((name) => name.endsWith('_PORT')) ? ' (ports: PLAYLINE_<NAME>_PORT)' : '';
  return `ignored, because the stack sets them itself: ${names.sort().join(', ')}${ports}`;
}

/** Checks ports, topic names and service settings. @returns a line per error, without values, which may be secret */
export async function findInvalidSettings(
  paths: StackPaths,
  environment: Environment,
  { cluster }: { cluster: boolean } = { cluster: false },
): Promise<string[]> {
  const passedOn = Object.entries(environment).filter(([name]) => !isSetByStack(name));
  const checked = { ...Object.fromEntries(passedOn), ...PLACEHOLDERS };
  const checks = [
    ...allPortNames({ cluster }).map((name) => () => configuredPort(name, environment)),
    ...(await schemasOf(paths)).map((schema) => () => parseConfig(schema, checked)),
    () => assertSameTopics(paths, environment),
    () => assertSameNodes(paths, nodeCountsOf({ cluster })),
  ];
  return [...new Set(checks.flatMap(errorsOf))];
}

function errorsOf(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (error) {
    const lines = (error as Error).message.split('\n').map((line) => line.trim());
    return error instanceof ConfigError ? lines.slice(1) : [lines.join('\n')];
  }
}
