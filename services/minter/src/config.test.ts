import { parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const stores = {
  KAFKA_BROKERS: '127.0.0.1:1',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
  REDIS_URL: 'redis://127.0.0.1:1',
  SIGNER_KEYS: 'x',
};
const chain = { name: 'demo-chain', id: 'eip155:31337', urls: ['https://node.example/v3/a-secret-of-ours'] };
const parse = (chains: unknown) => parseConfig(configSchema, { ...stores, CHAIN_NODES: JSON.stringify(chains) });

it('members of a chain that only the indexer uses are accepted: both services have the same setting', () => {
  expect(parse([{ ...chain, start: 7, gasMax: 1_000_000 }]).CHAIN_NODES).toMatchObject([{ gasMax: 1_000_000 }]);
  expect(parse([]).CHAIN_NODES).toEqual([]);
});

it('an error in the setting of a chain names its place and shows no address', () => {
  expect(() => parse([{ ...chain, url: 'a-secret-of-ours' }])).toThrow(
    /^(?!.*a-secret-of-ours).*CHAIN_NODES\.0: .*"url"/s,
  );
  expect(() => parseConfig(configSchema, stores)).toThrow('CHAIN_NODES');
});

it('one chain may not have two names: both would use the nonces of the same signer', () => {
  const other = { ...chain, name: 'other-chain' };
  expect(() => parse([chain, other])).toThrow(/^(?!.*a-secret-of-ours).*CHAIN_NODES: expected each id once/s);
  expect(parse([chain, { ...other, id: 'eip155:1' }]).CHAIN_NODES).toHaveLength(2);
});
