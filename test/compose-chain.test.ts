// Tests the chain configuration in docker-compose.yml by parsing the example lines in its comment with the services'
// schemas.
import { readFileSync } from 'node:fs';
import { parseConfig } from '@playline/runtime';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { z } from 'zod';
import { createSignerKeys } from '../infra/local/secrets.ts';

interface Container {
  readonly environment?: Readonly<Record<string, string>>;
  readonly extra_hosts?: readonly string[];
}

const text = readFileSync(new URL('../docker-compose.yml', import.meta.url), 'utf8');
const compose: { services: Record<string, Container> } = parse(text, { merge: true, maxAliasCount: -1 });
/** The example lines for .env in the comment of docker-compose.yml. */
const example = new Map(
  [...text.matchAll(/^# {3}(CHAIN_[A-Z]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
);

async function readSettings(service: string): Promise<Record<string, unknown>> {
  const fill = (value: string) =>
    value
      .replace(/\$\{([A-Z_]+):-([^}]*)\}/g, (_, name: string, fallback: string) => example.get(name) ?? fallback)
      .replace(/\$\{[^}]*\}/g, 'ab'.repeat(32));
  const { configSchema } = (await import(`../services/${service}/src/config.ts`)) as { configSchema: z.ZodObject };
  const settings = Object.entries(compose.services[service]?.environment ?? {}).map(([name, value]) => [
    name,
    fill(value),
  ]);
  return parseConfig(configSchema, {
    ...Object.fromEntries(settings),
    SIGNER_KEYS: createSignerKeys(),
    SIGNER_PUBLIC_KEY: '',
  });
}

describe('a chain in docker-compose.yml', () => {
  it('is configured with the same nodes in indexer, minter, chain-api and portal by the example lines for .env', async () => {
    expect([...example.keys()]).toEqual(['CHAIN_NODES', 'CHAIN_NAME', 'CHAIN_ID']);
    const [{ name, id }] = JSON.parse(example.get('CHAIN_NODES') ?? '[]');
    for (const service of ['chain-indexer', 'minter', 'chain-api', 'portal'])
      expect((await readSettings(service)).CHAIN_NODES, service).toMatchObject([{ name, id }]);
    expect((await readSettings('chain-api')).CHAINS).toEqual([{ name, id }]);
  });

  it('may run on the host, which is reachable only from the services that connect to a node', () => {
    const settings = Object.entries(compose.services).filter(
      ([, { environment = {} }]) => 'CHAIN_NODES' in environment,
    );
    const names = new Set(settings.map(([name]) => name.replace(/-2$/, '')));
    expect([...names].sort()).toEqual(['chain-api', 'chain-indexer', 'minter', 'portal']);
    for (const [, { extra_hosts: hosts }] of settings) expect(hosts).toEqual(['host.docker.internal:host-gateway']);
  });
});
