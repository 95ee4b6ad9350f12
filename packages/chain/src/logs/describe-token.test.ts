import { expect, it } from 'vitest';
import { NodeFault } from '../node.ts';
import { DECIMALS_MAX } from '../rows.ts';
import { describeErc20, describeTokens, toTokenText } from './describe-token.ts';

const word = (value: number) => value.toString(16).padStart(64, '0');
const padded = (bytes: Buffer) => bytes.toString('hex').padEnd(Math.ceil(bytes.length / 32) * 64, '0');
const abiString = (text: string) => `0x${word(32)}${word(Buffer.byteLength(text))}${padded(Buffer.from(text))}`;
const bytes32 = (text: string) => `0x${Buffer.from(text).toString('hex').padEnd(64, '0')}`;
const CONTRACTS = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`];

it('a token name is decoded from an ABI string, or from the zero-padded word that early contracts return', () => {
  expect(toTokenText(abiString('Gold of the Isles'))).toBe('Gold of the Isles');
  expect(toTokenText(bytes32('Maker'))).toBe('Maker');
  expect(toTokenText(bytes32('x'.repeat(32)))).toBe('x'.repeat(32));
});

it('a token name is null if the result is not a string, and is truncated to 256 characters', () => {
  for (const result of [
    null,
    '0x',
    '0x00',
    bytes32(''),
    abiString(''),
    abiString('\u202e\u0000\n'),
    `0x${word(2 ** 40)}${word(1)}`,
  ])
    expect(toTokenText(result)).toBeNull();
  expect(toTokenText(abiString('é'.repeat(4_000)))).toHaveLength(256);
  expect(toTokenText(abiString('a\u202eb\nc'))).toBe('abc');
  const malformed = Buffer.from([0xff, 0xfe, 0x41]);
  expect(toTokenText(`0x${word(32)}${word(3)}${padded(malformed)}`)?.isWellFormed()).toBe(true);
  expect(toTokenText(`0x${'ab'.repeat(30_000)}`)).toBeNull();
});

it('several contracts are described in one request, and a reverted call affects only its own contract', async () => {
  const requested: string[] = [];
  const results = [
    abiString('Gold'),
    abiString('GLD'),
    `0x${word(18)}`,
    bytes32('Old'),
    null,
    `0x${word(DECIMALS_MAX + 1)}`,
  ];
  const calls = async (sentCalls: readonly { to: string; data: string }[]) => {
    requested.push(...sentCalls.map(({ to, data }) => `${to.slice(0, 4)} ${data}`));
    return results;
  };
  const [gold, old] = await describeTokens({ calls }, 'demo-chain', CONTRACTS);
  expect(requested.slice(0, 3)).toEqual(['0xa1 0x06fdde03', '0xa1 0x95d89b41', '0xa1 0x313ce567']);
  expect(gold).toMatchObject({ name: 'Gold', symbol: 'GLD', decimals: 18, verificationStatus: 'unverified' });
  expect(old).toMatchObject({ name: 'Old', symbol: null, decimals: null, contractAddress: Buffer.alloc(20, 0xb2) });
});

it('a contract whose call fails on the node yields the fault, and the other contracts are described', async () => {
  const fault = new NodeFault('timeout', 'the request timed out');
  const results = [abiString('Gold'), abiString('GLD'), `0x${word(18)}`, null, fault, null];
  const [gold, other] = await describeTokens({ calls: async () => results }, 'demo-chain', CONTRACTS);
  expect([(gold as { name: string }).name, other]).toEqual(['Gold', fault]);
});

const erc20Of = (...results: readonly (string | null | NodeFault)[]) =>
  describeErc20({ calls: async () => results }, 'demo-chain', CONTRACTS[0]!);
const [name, symbol, decimals, amount] = [abiString('Gold'), abiString('GLD'), `0x${word(18)}`, `0x${word(0)}`];

it('a contract with a supply, balances and allowances is an ERC-20, with or without decimals', async () => {
  expect(await erc20Of(name, symbol, decimals, amount, amount, amount)).toMatchObject({ name: 'Gold', decimals: 18 });
  expect(await erc20Of(null, null, null, amount, amount, amount)).toMatchObject({ name: null, decimals: null });
});

it('a contract is not an ERC-20 if it has no code, lacks a method, or returns a hash for any call', async () => {
  expect(await erc20Of('0x', '0x', '0x', '0x', '0x', '0x')).toBeNull();
  expect(await erc20Of(name, symbol, null, amount, amount, null)).toBeNull();
  const hash = `0x${'ab'.repeat(32)}`;
  expect(await erc20Of(hash, hash, hash, hash, hash, hash)).toBeNull();
});

it('describeErc20 fails if any of its calls fails on the node', async () => {
  const fault = new NodeFault('behind', 'header not found');
  await expect(erc20Of(name, symbol, decimals, amount, fault, amount)).rejects.toBe(fault);
  await expect(erc20Of(fault, symbol, decimals, amount, amount, amount)).rejects.toBe(fault);
});
