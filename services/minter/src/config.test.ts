import { parseConfig } from '@playline/runtime';
import { describe, expect, it } from 'vitest';
import { configSchema } from './config.ts';

const stores = {
  ...{ KAFKA_BROKERS: '127.0.0.1:1', SCHEMA_REGISTRY_URL: 'http://127.0.0.1:1', REDIS_URL: 'redis://127.0.0.1:1' },
  SIGNER_KEYS: 'x',
};
const chain = { name: 'demo-chain', id: 'eip155:31337', urls: ['https://node.example/v3/a-secret-of-ours'] };
const parse = (chains: unknown) => parseConfig(configSchema, { ...stores, CHAIN_NODES: JSON.stringify(chains) });

describe('the settings of chains', () => {
  it('have caps, waits and the finality of the node unless they say otherwise', () => {
    expect(parse([chain]).CHAIN_NODES).toEqual([
      {
        ...{ name: 'demo-chain', chainId: 31_337, urls: chain.urls, finality: 'finalized', gasMax: 10_000_000 },
        ...{ feeMaxGwei: 500_000_000_000n, priorityFeeMaxGwei: 50_000_000_000n, stuckAfterS: 60, resendEveryS: 15 },
        ...{ pollMs: 2_000, openNoncesMax: 8, assetsMax: 100 },
      },
    ]);
    expect(parse([{ ...chain, finality: 64, feeMaxGwei: 0.5 }]).CHAIN_NODES[0]).toMatchObject({
      finality: 64,
      feeMaxGwei: 500_000_000n,
    });
    expect(parse([]).CHAIN_NODES).toEqual([]);
  });

  it.each([
    ['another namespace', { ...chain, id: 'solana:1' }],
    ['no number', { ...chain, id: 'eip155:0x1' }],
    ['no node', { ...chain, urls: [] }],
    ['a node by another protocol', { ...chain, urls: ['ftp://node.example/a-secret-of-ours'] }],
    ['an address that is none', { ...chain, urls: ['a-secret-of-ours'] }],
    ['a finality that is none', { ...chain, finality: 'safe' }],
    ['a word that nobody knows', { ...chain, url: 'a-secret-of-ours' }],
  ])('are refused with %s, and the mistake quotes no address', (_what, wrong) => {
    expect(() => parse([wrong])).toThrow(/^(?!.*a-secret-of-ours)/s);
  });

  it('name each chain once', () => {
    expect(() => parse([chain, chain])).toThrow('each name once');
  });
});
