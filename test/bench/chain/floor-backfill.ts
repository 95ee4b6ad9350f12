// Floor for the backfill: sends an indexer's requests and reads the responses. If PARSE is set, also parses the JSON.
import { startMeter } from '../floors/meter.ts';

const { NODE_URL = '', PARSE } = process.env;
const [from = 0, to = 0, rangeBlocks = 0] = [process.env.FROM, process.env.TO, process.env.RANGE_BLOCKS].map(Number);
const BATCH_MAX = 50;
const toHex = (number: number) => `0x${number.toString(16)}`;

let id = 0;
let bytes = 0;
const toCall = (method: string, params: readonly unknown[]) => ({ jsonrpc: '2.0', id: ++id, method, params });
const toBlockCall = (number: number) => toCall('eth_getBlockByNumber', [toHex(number), false]);

async function send(body: unknown): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(NODE_URL, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  bytes += text.length;
  if (PARSE !== undefined) JSON.parse(text);
}

async function readRange(first: number, last: number): Promise<void> {
  for (let start = first; start <= last; start += BATCH_MAX) {
    const count = Math.min(BATCH_MAX, last - start + 1);
    await send(Array.from({ length: count }, (_, index) => toBlockCall(start + index)));
  }
  // An indexer checks that the end of the range and the final block are on the same chain.
  await send([last, to].map(toBlockCall));
  await send(toCall('eth_getLogs', [{ fromBlock: toHex(first), toBlock: toHex(last) }]));
  for (const number of [first, last]) await send(toBlockCall(number));
}

const meter = startMeter();
for (let first = from; first <= to; first += rangeBlocks) await readRange(first, Math.min(first + rangeBlocks - 1, to));
meter.send(bytes);
