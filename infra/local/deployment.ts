import { join } from 'node:path';
import { runCommand } from './command.ts';
import { logFileOf, type Places } from './places.ts';
import { readJsonFile, writePrivateFile } from './private-file.ts';
import type { KeyPair } from './stack-file.ts';

type Env = Record<string, string | undefined>;

/**
 * Runs one of the project's own commands with this Node; its log is named after it.
 * @throws Error naming the command, with the last lines of its output
 */
async function runMain(
  places: Places,
  { main, args = [], env, log }: { main: string; args?: string[]; env: Env; log: string },
): Promise<string> {
  const options = { folder: places.checkout, env: { ...process.env, ...env }, logFile: logFileOf(places, log) };
  try {
    return await runCommand(process.execPath, [join(places.checkout, main), ...args], options);
  } catch (error) {
    throw new Error(`${[main, ...args].join(' ')} failed: ${(error as Error).message}`);
  }
}

/** Creates the topics and registers the schemas; safe to repeat. */
export async function deployKafka(places: Places, env: Env): Promise<void> {
  await runMain(places, { main: 'infra/kafka/main.ts', env, log: 'deploy-kafka' });
}

/** Applies the SQL; safe to repeat. Needs the operator's account in `env`. */
export async function deployClickHouse(places: Places, env: Env): Promise<void> {
  await runMain(places, { main: 'infra/clickhouse/main.ts', env, log: 'deploy-clickhouse' });
}

const ENVIRONMENTS = ['production', 'development'] as const;
const KINDS = ['publishable', 'secret'] as const;
const NO_KEYS: KeyPair = { publishable: '', secret: '' };
export type DemoKeys = Record<(typeof ENVIRONMENTS)[number], KeyPair>;

async function mintKey(places: Places, { environment, kind, env }: { environment: string; kind: string; env: Env }) {
  // A set-up that died half-way left a key that nobody has seen.
  const args = ['keys', 'create', '--environment', environment, '--kind', kind, '--replace', '--json'];
  const output = await runMain(places, { main: 'services/operator/src/main.ts', args, env, log: 'operator' });
  const { key } = JSON.parse(output.trim().split('\n').at(-1) ?? 'null') as { key?: unknown };
  if (typeof key !== 'string') throw new Error('the operator made no key');
  return key;
}

/** Where the demo keys are kept; the operator's key commands write it too. */
export const demoKeysPath = (places: Places): string => join(places.state, 'keys.json');

/** The demo project's keys as they are now; null before the first start. */
export function readDemoKeys(places: Places): DemoKeys | null {
  return readJsonFile(demoKeysPath(places)) as DemoKeys | null;
}

/**
 * The demo project's four keys: made once, kept in `keys.json` (mode 0600) beside the data that knows them. A key that
 * was revoked since is made anew, for what tries the stack out needs all four. Needs Redis, and the topics.
 */
export async function loadDemoKeys(places: Places, env: Env): Promise<DemoKeys> {
  const kept = readDemoKeys(places);
  const keys: DemoKeys = kept ?? { production: { ...NO_KEYS }, development: { ...NO_KEYS } };
  const pairs = ENVIRONMENTS.flatMap((environment) => KINDS.map((kind) => ({ environment, kind })));
  const wanted = pairs.filter(({ environment, kind }) => keys[environment][kind] === '');
  if (wanted.length === 0) return keys;
  const minted = wanted.map(async ({ environment, kind }) => {
    keys[environment][kind] = await mintKey(places, { environment, kind, env });
  });
  // Once, with the first keys: an identity graph that is empty later has been lost, and must be rebuilt, not declared new.
  // The log tells whether it is new; the tables, which hold nothing else, may not be there yet.
  const asked = { ...env, CLICKHOUSE_URL: undefined };
  const identity = { main: 'services/operator/src/main.ts', args: ['identity', 'init'], env: asked, log: 'operator' };
  await Promise.all([...minted, ...(kept === null ? [runMain(places, identity)] : [])]);
  writePrivateFile(demoKeysPath(places), `${JSON.stringify(keys, null, 2)}\n`);
  return keys;
}
