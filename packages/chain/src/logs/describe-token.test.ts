import { describe, expect, it } from 'vitest';
import { DECIMALS_MAX } from '../rows.ts';
import { describeTokens, toTokenText } from './describe-token.ts';

const word = (value: number) => value.toString(16).padStart(64, '0');
const padded = (bytes: Buffer) => bytes.toString('hex').padEnd(Math.ceil(bytes.length / 32) * 64, '0');
const abiString = (text: string) => `0x${word(32)}${word(Buffer.byteLength(text))}${padded(Buffer.from(text))}`;
const bytes32 = (text: string) => `0x${Buffer.from(text).toString('hex').padEnd(64, '0')}`;
const CONTRACTS = [`0x${'a1'.repeat(20)}`, `0x${'b2'.repeat(20)}`];

describe('the name of a contract', () => {
  it('is decoded as a string, or as a zero-padded word for early contracts', () => {
    expect(toTokenText(abiString('Gold of the Isles'))).toBe('Gold of the Isles');
    expect(toTokenText(bytes32('Maker'))).toBe('Maker');
    expect(toTokenText(bytes32('x'.repeat(32)))).toBe('x'.repeat(32));
  });

  it('is null when it is no text, and never longer than in an import', () => {
    for (const answer of [
      null,
      '0x',
      '0x00',
      bytes32(''),
      abiString(''),
      abiString('\u202e\u0000\n'),
      `0x${word(2 ** 40)}${word(1)}`,
    ])
      expect(toTokenText(answer)).toBeNull();
    expect(toTokenText(abiString('é'.repeat(4_000)))).toHaveLength(256);
    expect(toTokenText(abiString('a\u202eb\nc'))).toBe('abc');
    const lone = Buffer.from([0xff, 0xfe, 0x41]);
    expect(toTokenText(`0x${word(32)}${word(3)}${padded(lone)}`)?.isWellFormed()).toBe(true);
    expect(toTokenText(`0x${'ab'.repeat(30_000)}`)).toBeNull();
  });

  it('is asked of all contracts at once, and a failed call does not affect the others', async () => {
    const asked: string[] = [];
    const answers = [
      abiString('Gold'),
      abiString('GLD'),
      `0x${word(18)}`,
      bytes32('Old'),
      null,
      `0x${word(DECIMALS_MAX + 1)}`,
    ];
    const calls = async (given: readonly { to: string; data: string }[]) => {
      asked.push(...given.map(({ to, data }) => `${to.slice(0, 4)} ${data}`));
      return answers;
    };
    const [gold, old] = await describeTokens({ calls }, 'demo-chain', CONTRACTS);
    expect(asked.slice(0, 3)).toEqual(['0xa1 0x06fdde03', '0xa1 0x95d89b41', '0xa1 0x313ce567']);
    expect(gold).toMatchObject({ name: 'Gold', symbol: 'GLD', decimals: 18, verificationStatus: 'unverified' });
    expect(old).toMatchObject({ name: 'Old', symbol: null, decimals: null, contractAddress: Buffer.alloc(20, 0xb2) });
  });
});
