// Runs the project's own commands for a stack: topics, tables, keys and the identity epoch.
import { join } from 'node:path';
import { CommandError, runCommand } from './command.ts';
import { EXIT } from './command-table.mjs';
import { logFileOf, type StackPaths } from './paths.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import { queryRedisOnce } from './redis.ts';
import { environmentWithoutStores } from './services.ts';
import type { KeyPair } from './stack-file.ts';

type Env = Record<string, string | undefined>;

/** @throws Error naming the command, with the last lines of its output */
async function runMain(
  paths: StackPaths,
  { main, args = [], env, log }: { main: string; args?: string[]; env: Env; log: string },
): Promise<string> {
  const environment = { ...environmentWithoutStores(), ...env };
  const options = { folder: paths.checkout, env: environment, logFile: logFileOf(paths, log) };
  try {
    return await runCommand(process.execPath, [join(paths.checkout, main), ...args], options);
  } catch (error) {
    throw new Error(`${[main, ...args].join(' ')} failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Creates the topics and registers the schemas; repeatable. */
export async function deployKafka(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/kafka/main.ts', env, log: 'deploy-kafka' });
}

/** Applies the SQL; repeatable. Needs the operator's account in `env`. */
export async function deployClickHouse(paths: StackPaths, env: Env): Promise<void> {
  await runMain(paths, { main: 'infra/clickhouse/main.ts', env, log: 'deploy-clickhouse' });
}

/** Runs a command of the operator. @returns its standard output @throws Error with the last lines of its output */
export const runOperator = (paths: StackPaths, { args, env }: { args: string[]; env: Env }): Promise<string> =>
  runMain(paths, { main: 'services/operator/src/main.ts', args, env, log: 'operator' });

const ENVIRONMENTS = ['production', 'development'] as const;
const KINDS = ['publishable', 'secret'] as const;
/** The default of ACCESS_KEY_PREFIX in gateway and operator. */
const DEFAULT_KEY_PREFIX = 'svcapik';
const NO_KEYS: KeyPair = { publishable: '', secret: '' };
export type DemoKeys = Record<(typeof ENVIRONMENTS)[number], KeyPair>;

async function createKey(
  paths: StackPaths,
  { environment, kind, env }: { environment: string; kind: string; env: Env },
) {
  // An interrupted set-up leaves a key whose text is lost, so it is replaced.
  const args = ['keys', 'create', '--environment', environment, '--kind', kind, '--replace', '--json'];
  const output = await runOperator(paths, { args, env });
  const { key } = JSON.parse(output.trim().split('\n').at(-1) ?? 'null') as { key?: unknown };
  if (typeof key !== 'string') throw new Error('keys create printed no key');
  return key;
}

export const demoKeysPath = (paths: StackPaths): string => join(paths.state, 'keys.json');

/** Null before the first start. */
export const readDemoKeys = (paths: StackPaths): DemoKeys | null =>
  readJsonFile(demoKeysPath(paths)) as DemoKeys | null;

/** The TOPIC_PREFIX that the data was made with. */
const topicsPath = (paths: StackPaths) => join(paths.state, 'topics.json');

/** @throws Error when the data of this stack belongs to topics of another TOPIC_PREFIX */
export function assertSameTopics(paths: StackPaths, env: Env): void {
  const made = readJsonFile(topicsPath(paths)) as { prefix: string } | null;
  const prefix = env.TOPIC_PREFIX ?? '';
  if (readDemoKeys(paths) === null || (made?.prefix ?? '') === prefix) return;
  throw new Error(
    `TOPIC_PREFIX is '${prefix}', but the data of this stack was made with '${made?.prefix ?? ''}': restore the setting, or remove the data with \`npm run reset\``,
  );
}

/** Whether a stored key was revoked ('') or has another prefix than new keys. */
const isUnusable = (key: string, prefix: string): boolean =>
  !['', '_test'].some((mark) => new RegExp(`^[ps]k_${prefix}${mark}-`).test(key));

/** The demo project's keys from `keys.json`. Creates missing, revoked and outdated ones. Needs Redis and the topics. */
export async function loadDemoKeys(paths: StackPaths, env: Env): Promise<DemoKeys> {
  const settings: Env = { ...process.env, ...env };
  const keys: DemoKeys = readDemoKeys(paths) ?? { production: { ...NO_KEYS }, development: { ...NO_KEYS } };
  const pairs = ENVIRONMENTS.flatMap((environment) => KINDS.map((kind) => ({ environment, kind })));
  const prefix = settings.ACCESS_KEY_PREFIX ?? DEFAULT_KEY_PREFIX;
  const wanted = pairs.filter(({ environment, kind }) => isUnusable(keys[environment][kind], prefix));
  if (wanted.length === 0) return keys;
  await Promise.all(
    wanted.map(async ({ environment, kind }) => {
      keys[environment][kind] = await createKey(paths, { environment, kind, env });
    }),
  );
  writePrivateFile(topicsPath(paths), `${JSON.stringify({ prefix: settings.TOPIC_PREFIX ?? '' })}\n`);
  writePrivateFile(demoKeysPath(paths), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}

const hasEpoch = (url: string): Promise<boolean> =>
  queryRedisOnce({ url }, async (client) => (await client.exists('identity:epoch')) === 1);

/**
 * Creates the epoch of the identity graph in a new deployment. Needs Redis, the topics and the tables.
 * @returns 'lost' when log or tables have data that Redis has lost
 */
export async function openIdentities(
  paths: StackPaths,
  { env, redis }: { env: Env; redis: { url: string } },
): Promise<'present' | 'lost'> {
  if (await hasEpoch(redis.url)) return 'present';
  try {
    await runOperator(paths, { args: ['identity', 'init'], env });
    return 'present';
  } catch (error) {
    const { cause } = error as Error;
    if (cause instanceof CommandError && cause.exitCode === EXIT.emptied) return 'lost';
    throw error;
  }
}
