import { parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const stores = {
  ...{ KAFKA_BROKERS: '127.0.0.1:1', SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' },
  SIGNER_KEYS: 'x',
};
const chain = { name: 'demo-chain', id: 'eip155:31337', urls: ['https://node.example/v3/a-secret-of-ours'] };
const parse = (chains: unknown) => parseConfig(configSchema, { ...stores, CHAIN_NODES: JSON.stringify(chains) });

it('chains are read with what only the indexer uses, so that both are told the same text', () => {
  expect(parse([{ ...chain, start: 7, gasMax: 1_000_000 }]).CHAIN_NODES).toMatchObject([{ gasMax: 1_000_000 }]);
  expect(parse([]).CHAIN_NODES).toEqual([]);
});

it('a mistake in a chain is told by its place, and quotes no address', () => {
  expect(() => parse([{ ...chain, url: 'a-secret-of-ours' }])).toThrow(
    /^(?!.*a-secret-of-ours).*CHAIN_NODES\.0: .*"url"/s,
  );
  expect(() => parseConfig(configSchema, stores)).toThrow('CHAIN_NODES');
});

it('one chain may not be told by two names: both would give out the nonces of a signer', () => {
  const other = { ...chain, name: 'other-chain' };
  expect(() => parse([chain, other])).toThrow(/^(?!.*a-secret-of-ours).*CHAIN_NODES: expected each id once/s);
  expect(parse([chain, { ...other, id: 'eip155:1' }]).CHAIN_NODES).toHaveLength(2);
});
