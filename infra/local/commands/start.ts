import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError, parseConfig } from '@playline/runtime';
import type { z } from 'zod';
import { chainSettings, signingSettings } from '../chain.ts';
import { endOrphans } from '../children.ts';
import { runCommand } from '../command.ts';
import { EXIT } from '../command-table.mjs';
import { assertSameTopics } from '../deployment.ts';
import { logFileOf, type StackPaths } from '../paths.ts';
import { givenPort } from '../ports.ts';
import { proveRoundTrip } from '../proof.ts';
import { createProgress, deathReport, silenceReport, stackReport } from '../report.ts';
import { makeSignerKeys, signerPublicKeyOf } from '../secrets.ts';
import { environmentWithoutStores, isStoreSetting, SERVICES } from '../services.ts';
import { startStack } from '../stack.ts';
import { readStackFile, type StackFile, secretKeyHeaderOf, sharedSettingsOf } from '../stack-file.ts';
import type { Stack } from '../stack-options.ts';
import { portNamesFor } from '../stack-options.ts';
import { claimSupervision, findSupervisor, releaseSupervision } from '../supervisor.ts';

/**
 * The broker wakes two hundred times a second for timers that nobody waits for. A tenth of a second does not matter
 * there; with a quarter the start took a second longer. Services end keys within a second and measure the delay of
 * their event loops, so theirs are nearly on time.
 */
const TIMER_SLACK_MS = { stores: 100, services: 10 };

const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface Supervision {
  report: (line: string) => void;
  /** Words of `start` and `up`. */
  args: readonly string[];
  /** All processes serve, and the round trip is not proven yet. */
  onServing?: () => void;
  /** The round trip is proven. */
  onReady: (stack: Stack) => void;
}

/** Starts the stack, proves it, and keeps it until a signal; resolves when everything has been stopped. */
async function superviseUntilSignal(supervision: Supervision): Promise<void> {
  const { report: say } = supervision;
  const asked = new AbortController();
  const signalled = new Promise<void>((done) => {
    // One Ctrl-C arrives up to three times (from terminal, npm and bootstrap), so a stop that has begun goes on.
    for (const signal of STOP_SIGNALS)
      process.on(signal, () => {
        asked.abort();
        done();
      });
  });
  let stack: Stack | null = null;
  try {
    stack = await startStack({
      report: say,
      onDeath: (death) => say(deathReport(death)),
      onSilence: (silence) => say(silenceReport(silence)),
      signal: asked.signal,
      staysUp: true,
      timerSlackMs: TIMER_SLACK_MS,
      chain: !supervision.args.includes('--no-chain'),
    });
    if (!asked.signal.aborted) {
      supervision.onServing?.();
      say('posting one event and reading it back from ClickHouse');
      await Promise.race([prove(stack, say), signalled]);
      if (!asked.signal.aborted) supervision.onReady(stack);
    }
    await signalled;
  } catch (error) {
    if (!asked.signal.aborted) throw error;
  } finally {
    await stack?.stop();
  }
  say('stopped');
}

/** Where something is missing already, a proof that fails says no more: what stands shall stay up. */
async function prove(stack: Stack, say: (line: string) => void): Promise<void> {
  try {
    const crossing = await proveRoundTrip(stack.file);
    say(`the event was in ClickHouse ${crossing.toFixed()} ms after it was accepted`);
  } catch (error) {
    if (stack.missing.length === 0) throw error;
    say(`the event did not make it: ${(error as Error).message}`);
  }
}

/**
 * Makes this process the checkout's supervisor for as long as the stack runs.
 * @returns false when another one already is
 */
export async function supervise(places: StackPaths, supervision: Supervision): Promise<boolean> {
  if (claimSupervision(places) !== null) return false;
  try {
    const orphans = await endOrphans(places, supervision.report);
    if (orphans.length > 0) supervision.report(`ended what a dead supervisor had left: ${orphans.join(', ')}`);
    await superviseUntilSignal(supervision);
  } finally {
    releaseSupervision(places);
  }
  return true;
}

/** The words for a start that finds the stack running. */
export function alreadyRunning(places: StackPaths): string {
  const file = readStackFile(places);
  const hint = 'the stack of this checkout is already running; `npm run down` stops it';
  return file === null ? `${hint} (it is just starting or stopping)` : `${hint}\n${stackReport(places, file)}`;
}

/**
 * Judges what the environment says of a stack that is about to be started: mistakes go to standard error, a line each,
 * and what the stack leaves out is said.
 * @returns whether it may be started
 */
export async function hasValidSettings(places: StackPaths): Promise<boolean> {
  const mistakes = await configMistakes(places, process.env);
  for (const mistake of mistakes) console.error(mistake);
  if (mistakes.length > 0) return false;
  const leftOut = await leftOutSentence(places, process.env);
  if (leftOut !== null) console.log(leftOut);
  return true;
}

/** The first administrator's link of a stack with a portal; null when it needs none. */
export async function firstLinkOf(places: StackPaths, file: StackFile | null): Promise<string | null> {
  return file?.portal === undefined ? null : makeFirstLink(places);
}

/** Printed only to this terminal, not to a log, because anybody with the link can administer the portal. */
export function reportLink(link: string | null): void {
  if (link !== null) console.log(firstLinkReport(link));
}

/** Behind the table: a mint is final some blocks later, which nobody waits for. */
async function reportMint(file: StackFile): Promise<void> {
  try {
    const mint = await proveMint(file);
    if (mint === null) return;
    const seconds = (ms: number) => (ms / 1000).toFixed(1);
    console.log(
      `  A token of the demo ERC-721 was asked for: succeeded after ${seconds(mint.succeededMs)} s in transaction ` +
        `${mint.transactionHash},\n  in the history after ${seconds(mint.shownMs)} s as activity ${mint.activityId}.\n`,
    );
  } catch (error) {
    console.log(`  The mint that shows the way did not make it: ${(error as Error).message}\n`);
  }
}

/** `npm start`: in the foreground until Ctrl-C. */
export async function start(places: StackPaths, args: readonly string[]): Promise<number> {
  if (findSupervisor(places) === null && !(await hasValidSettings(places))) return EXIT.usage;
  const didRun = await supervise(places, {
    report: createProgress((line) => console.log(line)),
    args,
    onReady: ({ file, missing }) => {
      console.log(`${stackReport(places, file)}\n  Ctrl-C drains and stops all of it.\n`);
      for (const sentence of missing) console.log(`  ${sentence}\n`);
      void firstLinkOf(places, file).then(reportLink);
      void reportMint(file);
    },
  });
  if (!didRun) console.log(alreadyRunning(places));
  return didRun ? 0 : 1;
}

/**
 * A link for the first administrator of the portal. It is only for the terminal and is never logged. Null when there is
 * an administrator, or when that cannot be found out now: `npm run accounts -- link` reports which.
 */
async function makeFirstLink(places: StackPaths): Promise<string | null> {
  const main = join(places.checkout, 'services', 'operator', 'src', 'main.ts');
  // The command finds the stack by its records, as it does for people.
  const folder = dirname(places.state);
  const env = { ...environmentWithoutStores(), ...sharedSettingsOf(process.env) };
  try {
    const args = [main, 'accounts', 'link', '--json'];
    const output = await runCommand(process.execPath, args, { folder, env, logFile: logFileOf(places, 'operator') });
    return (JSON.parse(output) as { link: string }).link;
  } catch {
    return null;
  }
}

/** The line that a start prints with the link. */
function firstLinkReport(link: string): string {
  return `  Nobody administers the portal yet. Whoever opens this link first does; it is good for 15 minutes, once:
    ${link}
  Another one: npm run accounts -- link
`;
}

/**
 * Some blocks of a second each until the mint is final, the poll intervals of minter and indexer, and a busy machine.
 */
const FINAL_MAX_MS = 120_000;
const POLL_MS = 250;

/** Result of the mint request of a stack that has just started. */
interface ProvenMint {
  readonly referenceId: string;
  readonly transactionHash: string;
  readonly activityId: string;
  /** From the answer 202 until the mint is `succeeded`. */
  readonly succeededMs: number;
  /** From the answer 202 until the history has the mint. */
  readonly shownMs: number;
}

interface MintRequest {
  readonly status: string;
  readonly transaction_hash: string | null;
  readonly activity_id: string | null;
  readonly error: { readonly message: string } | null;
}

/**
 * Requests one token of the demo project's ERC-721. Waits until it is minted and final, and visible in the history.
 * @returns null when the stack has no chain
 * @throws Error when it is refused, fails, or takes too long
 */
export async function proveMint(file: StackFile, wallClockMs: () => number = Date.now): Promise<ProvenMint | null> {
  const { chain, chainApi, chains = [], keys } = file;
  const [served] = chains;
  if (chain === undefined || chainApi === undefined || served === undefined || keys === undefined) return null;
  const chainUrl = `${chainApi}/v1/chains/${served.name}`;
  const contract = chain.contracts.erc721;
  const mintsUrl = `${chainUrl}/collections/${contract}/nfts/mint-requests`;
  const headers = { [secretKeyHeaderOf(file)]: keys.development.secret };
  const referenceId = `start-${randomUUID()}`;
  const assets = [{ reference_id: referenceId, owner_address: chain.signer }];
  // A minute earlier, because the node has its own clock.
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
  const query = new URLSearchParams({
    contract_address: contract,
    activity_type: 'mint',
    from_indexed_at: fromIndexedAt,
  });
  await waitFor('the mint is not in the history', async () => {
    const { result } = await fetchJson<{ result: { id: string }[] }>(`${chainUrl}/activity-history?${query}`);
    return result.find(({ id }) => id === request.activity_id) ?? null;
  });
  return {
    referenceId,
    transactionHash: request.transaction_hash ?? '',
    activityId: request.activity_id ?? '',
    succeededMs,
    shownMs: performance.now() - acceptedAtMs,
  };
}

async function fetchJson<T>(url: string, { headers, ...init }: RequestInit = {}): Promise<T> {
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(url, {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the chain API answered with ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as T;
}

async function waitFor<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const begunAtMs = performance.now();
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() - begunAtMs > FINAL_MAX_MS) throw new Error(`${what} after ${FINAL_MAX_MS / 1000} s`);
    await delay(POLL_MS);
  }
}

type Environment = Record<string, string | undefined>;

/**
 * Settings that the stack gives to services whatever the environment says. These values replace its own, so that all
 * others can be checked before a stack exists.
 */
const STAND_INS: Record<string, string> = {
  KAFKA_BROKERS: '127.0.0.1:1',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
  REDIS_URL: 'redis://127.0.0.1:1',
  CLICKHOUSE_URL: 'http://127.0.0.1:1',
  CLICKHOUSE_USER: 'writer',
  CLICKHOUSE_PASSWORD: 'x',
  CLICKHOUSE_DATABASE: 'playline',
  IDENTITY_PEPPER: '00'.repeat(32),
  ...chainSettings({ cursorSecret: '00'.repeat(32) }, 1),
  SIGNER_PUBLIC_KEY: signerPublicKeyOf({ signerKeys: makeSignerKeys() }),
  ...signingSettings({ signerKeys: makeSignerKeys() }),
  PORTAL_SECRET: '00'.repeat(32),
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

const isDecidedByStack = (name: string) => isStoreSetting(name) || Object.hasOwn(STAND_INS, name);

/**
 * The settings of every service. They are imported by path, as processes are started by path, because infra may not
 * import services.
 */
async function schemasOf(places: StackPaths): Promise<z.ZodObject[]> {
  const modules = SERVICES.map(({ name }) => import(join(places.checkout, 'services', name, 'src', 'config.ts')));
  return (await Promise.all(modules)).map(({ configSchema }) => configSchema);
}

/** Names the settings that are set but ignored, because the stack has its own; null when there are none. */
export async function leftOutSentence(places: StackPaths, environment: Environment): Promise<string | null> {
  const known = new Set((await schemasOf(places)).flatMap(({ shape }) => Object.keys(shape)));
  const isLeftOut = (name: string) => known.has(name) && isDecidedByStack(name) && environment[name] !== '';
  const names = Object.keys(environment).filter(isLeftOut);
  if (names.length === 0) return null;
  const ports = names.some((name) => name.endsWith('_PORT')) ? ' (ports: PLAYLINE_<NAME>_PORT)' : '';
  return `left out, since the stack decides them itself: ${names.sort().join(', ')}${ports}`;
}

/**
 * Checks the whole environment before anything is started: ports, names of topics, settings of every service.
 * @returns one line for each mistake, without the value, because it may be a secret; empty when all is right
 */
export async function configMistakes(places: StackPaths, environment: Environment): Promise<string[]> {
  const passedOn = Object.entries(environment).filter(([name]) => !isDecidedByStack(name));
  const judged = { ...Object.fromEntries(passedOn), ...STAND_INS };
  const mistakes = portNamesFor({ chain: true }, SERVICES).flatMap((name) =>
    mistakesOf(() => givenPort(name, environment)),
  );
  for (const schema of await schemasOf(places))
    for (const each of mistakesOf(() => parseConfig(schema, judged))) mistakes.push(each);
  for (const each of mistakesOf(() => assertSameTopics(places, environment))) mistakes.push(each);
  return [...new Set(mistakes)];
}

function mistakesOf(judge: () => unknown): string[] {
  try {
    judge();
    return [];
  } catch (error) {
    const { message } = error as Error;
    if (!(error instanceof ConfigError)) return [message];
    // Its first line only announces the others.
    return message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
}
