import { createReadActivities, readRange } from '@playline/chain';
import { createRpcNode } from '@playline/chain/rpc';
import { describe, expect, it } from 'vitest';
import { blockHashOf, type CannedShape, createCannedBlock } from './canned-chain.ts';

interface Asked {
  readonly id: number;
  readonly params: readonly [string | { readonly fromBlock: string; readonly toBlock: string }];
}

/** A node in this process that answers from the generated chain. */
function createNode(shape: CannedShape) {
  const resultOf = (asked: Asked['params'][0]): string => {
    if (typeof asked === 'string') return createCannedBlock(Number(asked), shape).block;
    const [from, to] = [Number(asked.fromBlock), Number(asked.toBlock)];
    const logs = Array.from({ length: to - from + 1 }, (_, at) => createCannedBlock(from + at, shape).logs);
    return `[${logs.join(',')}]`;
  };
  const one = ({ id, params }: Asked) => `{"jsonrpc":"2.0","id":${id},"result":${resultOf(params[0])}}`;
  const ask = async (_url: unknown, init?: { body?: unknown }) => {
    const body = JSON.parse(String(init?.body)) as Asked | Asked[];
    return new Response(Array.isArray(body) ? `[${body.map(one).join(',')}]` : one(body));
  };
  return createRpcNode({ name: 'canned', url: 'http://127.0.0.1', fetch: ask as typeof fetch });
}

describe('a generated chain', () => {
  it('passes every check of the indexer, and each of its logs yields one activity', async () => {
    const after = { number: 9, hash: blockHashOf(9) };
    const range = { from: 10, to: 29, after, holds: [], hasBlooms: true };
    const read = await readRange(createNode({ logsABlock: 10 }), range);
    expect(read.blocks).toHaveLength(20);
    expect(read.logs).toHaveLength(200);
    const settings = { chain: 'canned', nativeSymbol: 'ETH', marketplaces: [], bridges: [] };
    const readings = [...createReadActivities(settings)(read)].map(({ reading }) => reading);
    expect(readings.filter(({ records, unread }) => records.length !== 1 || unread !== null)).toEqual([]);
    const kinds = new Set(readings.flatMap(({ records }) => records.map(({ type }) => type)));
    expect([...kinds].sort()).toEqual(['mint', 'transfer']);
  });

  it('is the same each time it is generated, and no two of its blocks are equal', () => {
    const shape = { logsABlock: 5 };
    expect(createCannedBlock(7, shape)).toEqual(createCannedBlock(7, shape));
    expect(createCannedBlock(7, shape).logs).not.toEqual(createCannedBlock(8, shape).logs);
  });
});
