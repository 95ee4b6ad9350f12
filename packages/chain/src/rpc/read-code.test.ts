import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { NodeFault } from '../node.ts';
import { createReadCode } from './read-code.ts';

const contract = { chain: 'demo-chain', contractAddress: `0x${'a'.repeat(40)}` };

/** Opens a node that has this code at every address. Without code, the node refuses every call. */
async function openNode(code: unknown, chainId = '0x7a69'): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { id, method, params } = JSON.parse(text);
    if (method === 'eth_getCode') expect(params).toEqual([contract.contractAddress, 'latest']);
    const error = { code: -32000, message: 'no' };
    const result = method === 'eth_chainId' ? chainId : code;
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(code === null ? { error } : { result }) }));
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const readCode = (...urls: string[]) => createReadCode([{ name: 'demo-chain', chainId: 31_337, urls }])(contract);

it.each([
  ['a contract has code', ['0x6001'], true],
  ['an account has no code', ['0x'], false],
  ['an account that delegates to a contract has no code', [`0xEF0100${'b'.repeat(40)}`], false],
  ['a contract has code if only one of the nodes has its block', ['0x', '0x6001'], true],
  ['an account has no code if a node fails', [null, '0x'], false],
])('%s', async (_, codes, expected) => {
  expect(await readCode(...(await Promise.all(codes.map((code) => openNode(code)))))).toBe(expected);
});

it('the code is unknown if a chain has no nodes', async () => {
  expect(await createReadCode([])(contract)).toBeNull();
});

it('reading the code fails if every node fails, is on another chain, or returns no code', async () => {
  for (const node of [openNode(null), openNode('0x6001', '0x1'), openNode(7)])
    await expect(readCode(await node)).rejects.toThrow(NodeFault);
});
