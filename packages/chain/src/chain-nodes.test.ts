import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chainNodes } from './chain-nodes.ts';

const chain = { name: 'demo-chain', id: 'eip155:31337', urls: ['https://node.example/v3/a-secret'] };
const parse = (chains: unknown) => chainNodes().parse(JSON.stringify(chains));
const errorsOf = (text: string) => {
  const { error } = chainNodes().safeParse(text);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n');
};

const OPTIONAL_MEMBERS = fc.record(
  {
    finality: fc.oneof(fc.constant('finalized' as const), fc.integer({ min: 1, max: 1_000_000 })),
    pollMs: fc.integer({ min: 50, max: 60_000 }),
    start: fc.nat(),
    rangeBlocks: fc.integer({ min: 1, max: 100_000 }),
    nativeSymbol: fc.constantFrom('ETH', 'IMX'),
    hasBlooms: fc.boolean(),
    stillAfterS: fc.integer({ min: 0, max: 86_400 }),
    gasMax: fc.integer({ min: 21_000, max: 1_000_000_000 }),
    stuckAfterS: fc.integer({ min: 1, max: 86_400 }),
    resendEveryS: fc.integer({ min: 1, max: 3_600 }),
    openNoncesMax: fc.integer({ min: 1, max: 64 }),
    unfinalNoncesMax: fc.integer({ min: 1, max: 10_000 }),
    assetsMax: fc.integer({ min: 1, max: 250 }),
  },
  { requiredKeys: [] },
);

it('CHAIN_NODES applies defaults for finality, limits and intervals', () => {
  expect(parse([chain])).toEqual([
    {
      ...chain,
      chainId: 31_337,
      finality: 'finalized',
      pollMs: 1_000,
      start: 0,
      rangeBlocks: 1_000,
      nativeSymbol: 'ETH',
      marketplaces: [],
      bridges: [],
      hasBlooms: true,
      legacyTokens: [],
      stillAfterS: 120,
      gasMax: 10_000_000,
      feeMaxWei: 500_000_000_000n,
      priorityFeeMaxWei: 50_000_000_000n,
      stuckAfterS: 60,
      resendEveryS: 15,
      openNoncesMax: 8,
      unfinalNoncesMax: 1_000,
      assetsMax: 100,
    },
  ]);
  expect(parse([{ ...chain, feeMaxGwei: 0.5 }])[0]).toMatchObject({ feeMaxWei: 500_000_000n });
  expect(parse([])).toEqual([]);
});

it('CHAIN_NODES adds CryptoKitties to the legacy tokens of Ethereum mainnet', () => {
  const kitties = { contract: '0x06012c8cf97bead5deae237070f9587f8e7a266d', type: 'ERC721' };
  const early = { contract: `0x${'EA'.repeat(20)}`, type: 'ERC20' };
  const [mainnet] = parse([{ ...chain, id: 'eip155:1', legacyTokens: [early] }]);
  expect(mainnet?.legacyTokens).toEqual([kitties, { ...early, contract: `0x${'ea'.repeat(20)}` }]);
});

it('CHAIN_NODES accepts an explicit value for each optional member', () => {
  const [defaults] = parse([chain]);
  const property = fc.property(OPTIONAL_MEMBERS, (members) => {
    expect(parse([{ ...chain, ...members }])).toEqual([{ ...defaults, ...members }]);
  });
  fc.assert(property);
});

it.each([
  ['a namespace other than eip155', { ...chain, id: 'solana:1' }, '0.id: expected eip155: and a number'],
  ['an id that is not a number', { ...chain, id: 'eip155:0x1' }, '0.id: expected eip155: and a number'],
  ['no node URL', { ...chain, urls: [] }, '0.urls: expected at least one node URL'],
  ['a node URL with an unsupported protocol', { ...chain, urls: ['ftp://x/a-secret'] }, '0.urls.0: expected http://…'],
  ['an invalid node URL', { ...chain, urls: ['a-secret'] }, '0.urls.0: expected http://…'],
  ['an unknown finality', { ...chain, finality: 'safe' }, '0.finality: expected "finalized", or a number of blocks'],
  ['a finality of 0 blocks', { ...chain, finality: 0 }, '0.finality: expected "finalized", or a number of blocks'],
  ['an unknown member', { ...chain, rpc: ['a-secret'] }, '"rpc"'],
  ['an invalid contract address', { ...chain, marketplaces: ['0x1'] }, '0.marketplaces.0: expected 0x and 40'],
  [
    'a bridge without events',
    { ...chain, bridges: [{ contract: `0x${'1'.repeat(40)}` }] },
    '0.bridges.0: a bridge needs',
  ],
])('CHAIN_NODES rejects %s, and the error names the member but not the node URL', (_what, wrong, error) => {
  const errors = errorsOf(JSON.stringify([wrong]));
  expect(errors).toContain(error);
  expect(errors).not.toContain('a-secret');
});

it('CHAIN_NODES rejects a value that is not a list or that repeats a chain name or id', () => {
  expect(errorsOf('[{"name"')).toContain('expected JSON');
  expect(errorsOf(JSON.stringify(chain))).toContain('expected a list of chains');
  expect(errorsOf(JSON.stringify([chain, chain]))).toContain('expected unique names');
  expect(errorsOf(JSON.stringify([chain, { ...chain, name: 'other' }]))).toContain('expected unique ids');
});

it('the README documents exactly the members of CHAIN_NODES', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, section = ''] = readme.split('## The setting `CHAIN_NODES`');
  const rows = [...section.split('\n## ')[0]!.matchAll(/^\| (`[^|]+) \|/gm)].map(([, names = '']) => names);
  const documented = rows.flatMap((names) => [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
  const { chainId: _, feeMaxWei, priorityFeeMaxWei, ...others } = parse([chain])[0]!;
  const accepted = [...Object.keys(others), 'feeMaxGwei', 'priorityFeeMaxGwei'];
  expect(documented.sort()).toEqual(accepted.sort());
  const [, example = ''] = /```json\n(.*?)\n```/s.exec(section) ?? [];
  expect(chainNodes().safeParse(example).success).toBe(true);
});
