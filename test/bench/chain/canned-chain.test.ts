import { createReadActivities, readRange } from '@playline/chain';
import { createRpcNode } from '@playline/chain/rpc';
import { expect, it } from 'vitest';
import { blockHashOf, createCannedBlock } from './canned-chain.ts';

interface RpcCall {
  readonly id: number;
  readonly params: readonly [string | { readonly fromBlock: string; readonly toBlock: string }];
}

const LOGS_PER_BLOCK = 10;

async function fetchCanned(_url: unknown, init?: { body?: unknown }): Promise<Response> {
  const resultOf = (param: RpcCall['params'][0]): string => {
    if (typeof param === 'string') return createCannedBlock(Number(param), LOGS_PER_BLOCK).block;
    const [from, to] = [Number(param.fromBlock), Number(param.toBlock)];
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
    return `[${numbers.map((number) => createCannedBlock(number, LOGS_PER_BLOCK).logs).join(',')}]`;
  };
  const toResponse = ({ id, params }: RpcCall) => `{"jsonrpc":"2.0","id":${id},"result":${resultOf(params[0])}}`;
  const body = JSON.parse(String(init?.body)) as RpcCall | RpcCall[];
  return new Response(Array.isArray(body) ? `[${body.map(toResponse).join(',')}]` : toResponse(body));
}

it('the generated chain passes all indexer checks, and each log yields one activity', async () => {
  const node = createRpcNode({ name: 'canned', url: 'http://127.0.0.1', fetch: fetchCanned as typeof fetch });
  const after = { number: 9, hash: blockHashOf(9) };
  const read = await readRange(node, { from: 10, to: 29, after, knownBlocks: [], hasBlooms: true });
  expect(read.logs).toHaveLength(200);
  const settings = { chain: 'canned', nativeSymbol: 'ETH', marketplaces: [], bridges: [] };
  const readings = [...createReadActivities(settings)(read)].map(({ reading }) => reading);
  expect(readings.filter(({ records, unread }) => records.length !== 1 || unread !== null)).toEqual([]);
  const kinds = new Set(readings.flatMap(({ records }) => records.map(({ type }) => type)));
  expect([...kinds].sort()).toEqual(['mint', 'transfer']);
});
