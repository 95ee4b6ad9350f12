import { join } from 'node:path';
import { ConfigError, parseConfig } from '@playline/runtime';
import type { z } from 'zod';
import { chainSettings, signingSettings } from './chain-settings.ts';
import { assertSameTopics } from './deployment.ts';
import type { Places } from './places.ts';
import { givenPort } from './ports.ts';
import { isStoreSetting, SERVICES } from './services.ts';
import { makeSignerKeys, signerPublicKeyOf } from './signer-keys.ts';
import { portNamesFor } from './stack-ports.ts';

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
async function schemasOf(places: Places): Promise<z.ZodObject[]> {
  const modules = SERVICES.map(({ name }) => import(join(places.checkout, 'services', name, 'src', 'config.ts')));
  return (await Promise.all(modules)).map(({ configSchema }) => configSchema);
}

/** Names the settings that are set but ignored, because the stack has its own; null when there are none. */
export async function leftOutSentence(places: Places, environment: Environment): Promise<string | null> {
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
export async function configMistakes(places: Places, environment: Environment): Promise<string[]> {
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
