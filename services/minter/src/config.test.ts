import { parseConfig } from '@playline/runtime';
import { expect, it } from 'vitest';
import { configSchema } from './config.ts';

const stores = {
  KAFKA_BROKERS: '127.0.0.1:1',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1',
  REDIS_URL: 'redis://127.0.0.1:1',
  SIGNER_KEYS: 'x',
};
const chain = { name: 'demo-chain', id: 'eip155:31337', urls: ['https://node.example/v3/a-secret'] };
const parse = (chains: unknown) => parseConfig(configSchema, { ...stores, CHAIN_NODES: JSON.stringify(chains) });

it('the config rejects two names for one chain, because both would use the same nonces', () => {
  const other = { ...chain, name: 'other-chain' };
  expect(() => parse([chain, other])).toThrow(/^(?!.*a-secret).*CHAIN_NODES: expected unique ids/s);
  expect(parse([chain, { ...other, id: 'eip155:1' }]).CHAIN_NODES).toHaveLength(2);
});
