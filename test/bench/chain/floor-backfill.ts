/**
 * Floor of the backfill. Sends the same requests about the same blocks as an indexer, and reads each answer to its end,
 * with PARSE also as JSON. It checks, publishes and stores nothing.
 */
const { NODE_URL = '', PARSE } = process.env;
const [from, to, rangeBlocks] = [process.env.FROM, process.env.TO, process.env.RANGE_BLOCKS].map(Number) as [
  number,
  number,
  number,
];
/** The batch size of the product's own node client. */
const BATCH_MAX = 50;
const toHex = (number: number) => `0x${number.toString(16)}`;

let id = 0;
let bytes = 0;
const toQuestion = (method: string, params: readonly unknown[]) => ({ jsonrpc: '2.0', id: ++id, method, params });
const toBlockQuestion = (number: number) => toQuestion('eth_getBlockByNumber', [toHex(number), false]);

async function ask(body: unknown): Promise<void> {
  const answer = await fetch(NODE_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  bytes += text.length;
  if (PARSE !== undefined) JSON.parse(text);
}

async function readRange(first: number, last: number): Promise<void> {
  for (let at = first; at <= last; at += BATCH_MAX) {
    const count = Math.min(BATCH_MAX, last - at + 1);
    await ask(Array.from({ length: count }, (_, index) => toBlockQuestion(at + index)));
  }
  // The end of the range and the final block, which must be on one chain.
  await ask([last, to].map(toBlockQuestion));
  await ask(toQuestion('eth_getLogs', [{ fromBlock: toHex(first), toBlock: toHex(last) }]));
  for (const number of [first, last]) await ask(toBlockQuestion(number));
}

const before = process.cpuUsage();
const startMs = performance.now();
for (let first = from; first <= to; first += rangeBlocks) await readRange(first, Math.min(first + rangeBlocks - 1, to));
const seconds = (performance.now() - startMs) / 1_000;
const { user, system } = process.cpuUsage(before);
process.send?.({ events: bytes, cpuSeconds: (user + system) / 1e6, seconds });
process.disconnect?.();
