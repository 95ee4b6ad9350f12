import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChainState, finalOf, type MemoryBlock, type MemoryChain } from './memory-chain.ts';

export interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface RpcServer {
  /** Contains a secret. */
  readonly url: string;
  readonly requests: Map<string, number>;
  isRefused: (request: RpcRequest) => boolean;
  /** Can corrupt a response. @returns whether the callback has responded */
  corrupt: (response: ServerResponse) => boolean;
  close(): Promise<void>;
}

export const RPC_SECRET = 'key-of-the-provider';

const toHex = (number: number) => `0x${number.toString(16)}`;
const toBlock = (block: MemoryBlock | undefined) =>
  block === undefined
    ? null
    : {
        number: toHex(block.number),
        hash: block.hash,
        parentHash: block.parentHash,
        timestamp: toHex(block.timestampS),
        logsBloom: `0x${block.logsBloom.toString('hex')}`,
      };
const toTransactions = ({ logs }: MemoryBlock) => [...new Set(logs.map(({ transactionHash }) => transactionHash))];
const toReceipt = (block: MemoryBlock, transactionHash: string) => ({
  blockHash: block.hash,
  transactionHash,
  logs: toLogs([block]).filter((log) => log.transactionHash === transactionHash),
});
const toLogs = (blocks: readonly MemoryBlock[]) =>
  blocks.flatMap(({ logs }) =>
    logs.map((log) => ({
      address: log.address,
      topics: log.topics,
      data: log.data,
      transactionHash: log.transactionHash,
      blockHash: log.blockHash,
      blockNumber: toHex(log.blockNumber),
      removed: false,
      logIndex: toHex(log.logIndex),
      transactionIndex: toHex(log.transactionIndex),
    })),
  );

function respond(state: ChainState, depth: number, { method, params }: RpcRequest): unknown {
  if (method === 'eth_chainId') return toHex(31337);
  if (method === 'eth_getBlockByNumber') {
    const [tag] = params as [string];
    const last = state.length - 1;
    return toBlock(state[tag === 'latest' ? last : tag === 'finalized' ? finalOf(state, depth) : Number(tag)]);
  }
  const [hash] = params as [string];
  const block = state.find((each) => each.hash === hash);
  if (method === 'eth_getBlockByHash')
    return block === undefined ? null : { ...toBlock(block), transactions: toTransactions(block) };
  if (method === 'eth_getBlockReceipts')
    return block === undefined ? null : toTransactions(block).map((each) => toReceipt(block, each));
  if (method === 'eth_getTransactionReceipt') {
    const found = state.find(({ logs }) => logs.some(({ transactionHash }) => transactionHash === hash));
    return found === undefined ? null : toReceipt(found, hash);
  }
  if (method === 'eth_getLogs') {
    const [filter] = params as [{ blockHash?: string; fromBlock: string; toBlock: string }];
    const { blockHash, fromBlock, toBlock: end } = filter;
    if (blockHash !== undefined) return toLogs(state.filter(({ hash }) => hash === blockHash));
    return toLogs(state.slice(Number(fromBlock), Number(end) + 1));
  }
  // Every token returns "GLD" as a zero-padded word, like early contracts.
  return `0x${Buffer.from('GLD').toString('hex').padEnd(64, '0')}`;
}

export async function openRpcServer(chain: MemoryChain): Promise<RpcServer> {
  const requests = new Map<string, number>();
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (opened.corrupt(response)) return;
    const body = JSON.parse(text) as RpcRequest | RpcRequest[];
    const respondOne = (request: RpcRequest) => {
      requests.set(request.method, (requests.get(request.method) ?? 0) + 1);
      const error = { code: -32005, message: 'query returned more than 10000 results' };
      if (opened.isRefused(request)) return { jsonrpc: '2.0', id: request.id, error };
      return { jsonrpc: '2.0', id: request.id, result: respond(chain.state, chain.depth, request) };
    };
    response.end(JSON.stringify(Array.isArray(body) ? body.map(respondOne) : respondOne(body)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const opened: RpcServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/${RPC_SECRET}`,
    requests,
    corrupt: () => false,
    isRefused: () => false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return opened;
}
