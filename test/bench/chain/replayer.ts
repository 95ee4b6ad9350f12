/** A node that serves a generated chain to an indexer. `bench_setHead` sets the latest block. */
import { createServer } from 'node:http';
import { type CannedBlock, createCannedBlock } from './canned-chain.ts';

interface RpcCall {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

const depth = Number(process.env.FINALITY_DEPTH);
const logsPerBlock = Number(process.env.LOGS_PER_BLOCK);
const chainId = `0x${Number(process.env.CHAIN_ID).toString(16)}`;
let head = Number(process.env.HEAD);

/** Enough for an indexer, which requests a range of blocks and then their logs. */
const CACHED_BLOCKS = 2_500;
const cache = new Map<number, CannedBlock>();
const numbers = new Map<string, number>();

function blockAt(number: number): CannedBlock {
  const cached = cache.get(number);
  if (cached !== undefined) return cached;
  const created = createCannedBlock(number, logsPerBlock);
  cache.set(number, created);
  numbers.set(created.hash, number);
  if (cache.size > CACHED_BLOCKS) {
    const [first] = cache.keys();
    numbers.delete(cache.get(first!)!.hash);
    cache.delete(first!);
  }
  return created;
}

function readBlock(tag: string): string {
  const number = tag === 'latest' ? head : tag === 'finalized' ? head - depth : Number(tag);
  return number < 0 || number > head ? 'null' : blockAt(number).block;
}

function readLogs({ blockHash, fromBlock, toBlock }: Record<string, string>): string {
  if (blockHash !== undefined) {
    const number = numbers.get(blockHash);
    return number === undefined ? '[]' : `[${blockAt(number).logs}]`;
  }
  const logs: string[] = [];
  for (let number = Number(fromBlock); number <= Math.min(Number(toBlock), head); number++)
    if (logsPerBlock > 0) logs.push(blockAt(number).logs);
  return `[${logs.join(',')}]`;
}

const WORD = `"0x${Buffer.from('CANNED').toString('hex').padEnd(64, '0')}"`;

function resultOf({ method, params }: RpcCall): string {
  if (method === 'eth_getBlockByNumber') return readBlock(params[0] as string);
  if (method === 'eth_getLogs') return readLogs(params[0] as Record<string, string>);
  if (method === 'eth_call') return WORD;
  if (method === 'bench_setHead') head = Number(params[0]);
  return `"${chainId}"`;
}

const toResponse = (call: RpcCall) => `{"jsonrpc":"2.0","id":${call.id},"result":${resultOf(call)}}`;

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method === 'GET') return response.end();
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as RpcCall | RpcCall[];
    const text = Array.isArray(body) ? `[${body.map(toResponse).join(',')}]` : toResponse(body);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
}).listen(Number(process.env.HTTP_PORT), '127.0.0.1');
