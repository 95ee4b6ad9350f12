import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * - open: forwards all requests
 * - silent: does not respond
 * - noLogs: refuses logs and receipts, so that blocks are final but cannot be indexed
 * - otherHashes: changes the hash of every block but the first, as after a deep reorganisation
 */
export type ChainProxyMode = 'open' | 'silent' | 'noLogs' | 'otherHashes';

const BLOCK_HASH = /("(?:hash|parentHash|blockHash)":"0x[0-9a-f]{63})([0-9a-f])"/g;
const HASH_PARAMETER = /(eth_getBlockByHash","params":\["0x[0-9a-f]{63}|"blockHash":"0x[0-9a-f]{63})([0-9a-f])"/g;
const changeDigit = (_: string, start: string, digit: string) =>
  `${start}${(Number.parseInt(digit, 16) ^ 1).toString(16)}"`;

const toRefusal = ({ id }: { id: number }) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32000, message: 'response size exceeded' },
});

/**
 * A proxy on loopback between services and a chain node.
 * @param toNode returns the URL of the node, which may start later
 */
export async function openChainProxy(toNode: () => string) {
  const state: { mode: ChainProxyMode } = { mode: 'open' };
  let genesis = '';
  const forward = async (body: string) => {
    const response = await fetch(toNode(), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(15_000),
    });
    return response.text();
  };
  /** The hash of the first block identifies the chain. */
  const changeHashes = async (text: string, pattern: RegExp) => {
    const block = { jsonrpc: '2.0', id: 0, method: 'eth_getBlockByNumber', params: ['0x0', false] };
    genesis ||= (JSON.parse(await forward(JSON.stringify(block))) as { result: { hash: string } }).result.hash;
    return text.replaceAll(genesis, 'genesis').replaceAll(pattern, changeDigit).replaceAll('genesis', genesis);
  };
  const respondTo = async (body: string): Promise<string> => {
    if (state.mode === 'otherHashes')
      return changeHashes(await forward(await changeHashes(body, HASH_PARAMETER)), BLOCK_HASH);
    if (state.mode === 'noLogs' && /eth_getLogs|eth_getBlockReceipts|eth_getTransactionReceipt/.test(body)) {
      const requests = JSON.parse(body) as { id: number } | { id: number }[];
      return JSON.stringify(Array.isArray(requests) ? requests.map(toRefusal) : toRefusal(requests));
    }
    return forward(body);
  };
  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      if (state.mode === 'silent') return;
      response.setHeader('content-type', 'application/json').end(await respondTo(body));
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set: (mode: ChainProxyMode) => {
      state.mode = mode;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
