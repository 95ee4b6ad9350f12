/**
 * Indexes a chain that has one block with LOGS logs, in a process whose memory the test limits. The node refuses to
 * list the block's logs and receipts, like nodes that limit their responses. Prints how much was published.
 */
import { createHash } from 'node:crypto';
import { createRpcNode } from '@playline/chain/rpc';
import { createMetrics } from '@playline/runtime';
import type { IndexBatch, IndexLogs } from '../index-log.ts';
import { createIndexerMetrics } from '../indexer-metrics.ts';
import { ChainLane } from '../lane.ts';
import { CHAIN } from './lanes.ts';
import { bloomOf, TOPIC } from './logs.ts';

const LOGS = Number(process.env.LOGS);
const LOGS_PER_TRANSACTION = 100;
const OWNERS = 5_000;
const HEAD = 6;
const LARGE = 1;

interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: readonly [string];
}
const toHex = (number: number) => `0x${number.toString(16)}`;
const word = (number: number) => `0x${number.toString(16).padStart(64, '0')}`;
const hashOf = (text: string) => `0x${createHash('sha256').update(text).digest('hex')}`;
const blockHash = (number: number) => hashOf(`block ${number}`);
const transactions = Array.from({ length: LOGS / LOGS_PER_TRANSACTION }, (_, at) => hashOf(`transaction ${at}`));
const indexes = new Map(transactions.map((hash, at) => [hash, at]));
const address = `0x${'a2'.repeat(20)}`;
const topicsOf = (at: number) => [TOPIC.transfer, word(1 + (at % OWNERS)), word(1 + ((at * 7) % OWNERS))];
const bloom = bloomOf(Array.from({ length: Math.min(LOGS, OWNERS) }, (_, at) => ({ address, topics: topicsOf(at) })));

function toBlock(number: number) {
  const logsBloom = number === LARGE ? `0x${bloom.toString('hex')}` : `0x${'0'.repeat(512)}`;
  const parents = { hash: blockHash(number), parentHash: blockHash(number - 1) };
  return { number: toHex(number), timestamp: '0x5', logsBloom, ...parents };
}

function toReceipt(transactionHash: string) {
  const at = indexes.get(transactionHash)!;
  const logs = Array.from({ length: LOGS_PER_TRANSACTION }, (_, index) => {
    const log = at * LOGS_PER_TRANSACTION + index;
    const location = {
      blockNumber: toHex(LARGE),
      blockHash: blockHash(LARGE),
      transactionHash,
      transactionIndex: toHex(at),
    };
    return { ...location, address, topics: topicsOf(log), data: word(log), logIndex: toHex(log), removed: false };
  });
  return { blockHash: blockHash(LARGE), transactionHash, logs };
}

function respond({ id, method, params: [first] }: RpcRequest) {
  const result = () => {
    if (method === 'eth_chainId') return toHex(CHAIN.chainId);
    if (method === 'eth_getBlockByNumber') return toBlock(first === 'latest' ? HEAD : Number(first));
    if (method === 'eth_getBlockByHash') return { ...toBlock(LARGE), transactions };
    if (method === 'eth_getTransactionReceipt') return toReceipt(first);
    return word(0);
  };
  if (method === 'eth_getLogs' || method === 'eth_getBlockReceipts')
    return { jsonrpc: '2.0', id, error: { code: -32005, message: 'query returned more than 10000 results' } };
  return { jsonrpc: '2.0', id, result: result() };
}

const published = { activities: 0, batches: 0, largest: 0 };
const logs: IndexLogs = {
  readProgress: async () => null,
  open: async () => ({
    progress: null,
    readTokens: async () => new Set<string>(),
    close: async () => {},
    publish: async ({ activities }: IndexBatch) => {
      published.activities += activities.length;
      published.batches++;
      published.largest = Math.max(published.largest, activities.length);
    },
  }),
};

const node = createRpcNode({
  name: 'large',
  url: 'http://127.0.0.1:1',
  fetch: async (_url, options) => {
    const body = JSON.parse(String(options?.body)) as RpcRequest | RpcRequest[];
    return new Response(JSON.stringify(Array.isArray(body) ? body.map(respond) : respond(body)));
  },
});
const chain = { ...CHAIN, finality: 2 };
const lane = new ChainLane({
  chain,
  nodes: [node],
  logs,
  metrics: createIndexerMetrics(createMetrics('test'))(chain.name),
});
while ((await lane.step()) !== 'idle');
process.stdout.write(JSON.stringify({ ...published, rssMib: Math.round(process.resourceUsage().maxRSS / 1024) }));
