import { join } from 'node:path';
import { CommandError, runCommand } from './command.ts';
import { EXIT } from './command-table.mjs';
import { logFileOf, type StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { queryRedisOnce } from './redis.ts';
import { environmentWithoutStores } from './services.ts';
import type { KeyPair } from './stack-file.ts';

type Env = Record<string, string | undefined>;

/**
 * Runs one of the project's own commands with this Node. Its log has the command's name.
 * @throws Error naming the command, with the last lines of its output
 */
async function runMain(
  places: StackPaths,
  { main, args = [], env, log }: { main: string; args?: string[]; env: Env; log: string },
): Promise<string> {
  const environment = { ...environmentWithoutStores(), ...env };
  const options = { folder: places.checkout, env: environment, logFile: logFileOf(places, log) };
  try {
    return await runCommand(process.execPath, [join(places.checkout, main), ...args], options);
  } catch (error) {
    throw new Error(`${[main, ...args].join(' ')} failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Creates the topics and registers the schemas; safe to repeat. */
export async function deployKafka(places: StackPaths, env: Env): Promise<void> {
  await runMain(places, { main: 'infra/kafka/main.ts', env, log: 'deploy-kafka' });
}

/** Applies the SQL; safe to repeat. Needs the operator's account in `env`. */
export async function deployClickHouse(places: StackPaths, env: Env): Promise<void> {
  await runMain(places, { main: 'infra/clickhouse/main.ts', env, log: 'deploy-clickhouse' });
}

/** Runs a command of the operator. @returns its standard output @throws Error with the last lines of its output */
export function runOperator(places: StackPaths, { args, env }: { args: string[]; env: Env }): Promise<string> {
  return runMain(places, { main: 'services/operator/src/main.ts', args, env, log: 'operator' });
}

const ENVIRONMENTS = ['production', 'development'] as const;
const KINDS = ['publishable', 'secret'] as const;
/** The default of ACCESS_KEY_PREFIX in gateway and operator. */
const DEFAULT_KEY_PREFIX = 'svcapik';
const NO_KEYS: KeyPair = { publishable: '', secret: '' };
export type DemoKeys = Record<(typeof ENVIRONMENTS)[number], KeyPair>;

async function mintKey(
  places: StackPaths,
  { environment, kind, env }: { environment: string; kind: string; env: Env },
) {
  // A set-up that died half-way has left a key whose text is lost, so it is replaced.
  const args = ['keys', 'create', '--environment', environment, '--kind', kind, '--replace', '--json'];
  const output = await runOperator(places, { args, env });
  const { key } = JSON.parse(output.trim().split('\n').at(-1) ?? 'null') as { key?: unknown };
  if (typeof key !== 'string') throw new Error('the operator made no key');
  return key;
}

/** File of the demo keys. The operator's key commands write it too. */
export const demoKeysPath = (places: StackPaths): string => join(places.state, 'keys.json');

/** The demo project's keys as they are now; null before the first start. */
export function readDemoKeys(places: StackPaths): DemoKeys | null {
  return readJsonFile(demoKeysPath(places)) as DemoKeys | null;
}

/** File with the TOPIC_PREFIX of this data. Keys of one log are unknown on the log of another prefix. */
const topicsPath = (places: StackPaths) => join(places.state, 'topics.json');

/** @throws Error when the data of this stack belongs to topics of another TOPIC_PREFIX */
export function assertSameTopics(places: StackPaths, env: Env): void {
  const made = readJsonFile(topicsPath(places)) as { prefix: string } | null;
  const prefix = env.TOPIC_PREFIX ?? '';
  if (readDemoKeys(places) === null || (made?.prefix ?? '') === prefix) return;
  throw new Error(
    `the data of this stack was made with TOPIC_PREFIX '${made?.prefix ?? ''}', and now it is '${prefix}': set it back, or begin anew with \`npm run reset\``,
  );
}

/** Whether a stored key is useless: it was revoked, or has another prefix than keys have now. */
function isSpent(key: string, prefix: string): boolean {
  return !['', '_test'].some((mark) => new RegExp(`^[ps]k_${prefix}${mark}-`).test(key));
}

/**
 * The demo project's four keys. Created once and stored in `keys.json` (mode 0600) beside the data. A key that was
 * revoked, or that does not fit the current settings, is created again, because the stack's own proofs need all four.
 * Needs Redis and the topics.
 */
export async function loadDemoKeys(places: StackPaths, env: Env): Promise<DemoKeys> {
  const settings: Env = { ...process.env, ...env };
  const kept = readDemoKeys(places);
  const keys: DemoKeys = kept ?? { production: { ...NO_KEYS }, development: { ...NO_KEYS } };
  const pairs = ENVIRONMENTS.flatMap((environment) => KINDS.map((kind) => ({ environment, kind })));
  const prefix = settings.ACCESS_KEY_PREFIX ?? DEFAULT_KEY_PREFIX;
  const wanted = pairs.filter(({ environment, kind }) => isSpent(keys[environment][kind], prefix));
  if (wanted.length === 0) return keys;
  const minted = wanted.map(async ({ environment, kind }) => {
    keys[environment][kind] = await mintKey(places, { environment, kind, env });
  });
  await Promise.all(minted);
  writePrivateFile(topicsPath(places), `${JSON.stringify({ prefix: settings.TOPIC_PREFIX ?? '' })}\n`);
  writePrivateFile(demoKeysPath(places), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}

/** Without it, no link is decided and no consent is read: infra/redis/README.md. */
const EPOCH = 'identity:epoch';

const hasEpoch = (url: string): Promise<boolean> =>
  queryRedisOnce({ url }, async (client) => (await client.exists(EPOCH)) === 1);

/**
 * Creates the epoch of the identity graph if there has never been one. Needs Redis, the topics and the tables.
 * @returns 'lost' when log or tables have data that this Redis has lost. Redis must then be rebuilt, not started as new
 * @throws Error of any other failure
 */
export async function openIdentities(
  places: StackPaths,
  { env, redis }: { env: Env; redis: { url: string } },
): Promise<'there' | 'lost'> {
  if (await hasEpoch(redis.url)) return 'there';
  const init = { main: 'services/operator/src/main.ts', args: ['identity', 'init'], env, log: 'operator' };
  try {
    await runMain(places, init);
    return 'there';
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof CommandError && cause.exitCode === EXIT.emptied) return 'lost';
    throw error;
  }
}
