import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRpcBatches, createRpcClient } from '@playline/chain/rpc';
import { encodeErrorResult, parseAbi } from 'viem/utils';
import { afterEach, expect, it } from 'vitest';
import { createJsonRpc, createJsonRpcBatches } from './json-rpc.ts';
import { createRpcNode } from './rpc-node.ts';

const SECRET = 'a-secret';
const CALL = { from: '0x01', to: '0x02', data: '0x' };
const opened: { close(): void }[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});

type Responder = (requested: { id: number; url: string; login: string }) => object;

async function openNode(respond: Responder, login = '') {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: number };
    const { url = '', headers } = request;
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...respond({ id, url, login: headers.authorization ?? '' }) }));
  }).listen(0, '127.0.0.1');
  opened.push(server);
  await new Promise((done) => server.once('listening', done));
  const { port } = server.address() as AddressInfo;
  const url = `http://${login}127.0.0.1:${port}/v2/${SECRET}`;
  const callBatch = createJsonRpcBatches(createRpcBatches({ url }));
  return createRpcNode({ call: createJsonRpc(createRpcClient({ url })), callBatch, finality: 'finalized' });
}

async function openBatchNode(
  respond: (body: readonly { readonly id: number; readonly method: string }[]) => object,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.end(JSON.stringify(respond(JSON.parse(Buffer.concat(chunks).toString()))));
  }).listen(0, '127.0.0.1');
  opened.push(server);
  await new Promise((done) => server.once('listening', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const refuseWith =
  (message: string, error: { code?: number; data?: unknown } = {}): Responder =>
  () => ({ error: { code: -32_000, message, ...error } });

it("node error messages are never shown, because they may contain the node's URL", async () => {
  const node = await openNode(({ url }) => ({
    error: { code: -32_600, message: `${url} has exceeded its plan: request reverted to https://node.example${url}` },
  }));
  const requested = [node.head(), node.call(CALL), node.gasOf(CALL), node.balanceOf('0x01'), node.receiptOf('0x01')];
  for (const each of await Promise.allSettled([...requested, node.send(Buffer.alloc(1))])) {
    const reported = each.status === 'rejected' ? String((each.reason as Error).stack) : JSON.stringify(each.value);
    expect(reported).not.toContain(SECRET);
  }
  expect(await node.send(Buffer.alloc(1))).toEqual({ kind: 'deferred' });
  await expect(node.call(CALL)).rejects.toThrow(/code -32600/);
});

it('a node that does not support batches receives single requests', async () => {
  // The response to a batch is a single object.
  const node = await openNode(({ id }) => ({ id, result: null }));
  expect(await node.viewOf('0x01', [1, 2])).toEqual({ receipt: null, blockHashes: [null, null] });
});

it('the node requests a receipt and blocks in one batch, highest block first', async () => {
  const bodies: { method: string; params?: readonly unknown[] }[][] = [];
  const url = await openBatchNode((body) => {
    bodies.push([...body]);
    return body.map(({ id }) => ({ jsonrpc: '2.0', id, result: null })).reverse();
  });
  const callBatch = createJsonRpcBatches(createRpcBatches({ url }));
  const call = createJsonRpc(createRpcClient({ url }));
  const node = createRpcNode({ call, callBatch, finality: 'finalized' });
  expect(await node.viewOf('0x01', [1, 2])).toEqual({ receipt: null, blockHashes: [null, null] });
  expect(bodies.map((body) => body.map(({ method, params }) => [method, params?.[0]]))).toEqual([
    [
      ['eth_getBlockByNumber', '0x2'],
      ['eth_getBlockByNumber', '0x1'],
      ['eth_getTransactionReceipt', '0x01'],
    ],
  ]);
});

const data = encodeErrorResult({ abi: parseAbi(['error Error(string)']), args: ['sold out'] });
const truncatedData = `${data.slice(0, 74)}${'ff'.repeat(32)}${data.slice(138)}`;
const outside = `${data.slice(0, 10)}${'ff'.repeat(32)}${data.slice(74)}`;
it.each([
  ['execution reverted: sold out', { code: 3, data }, { kind: 'reverted', message: 'sold out' }],
  ['VM Exception', { data: { message: 'x', data } }, { kind: 'reverted', message: 'sold out' }],
  ['execution reverted', {}, { kind: 'reverted', message: 'The contract rejected the call without a message.' }],
  ['a string that is longer than its data', { data: truncatedData }, { kind: 'reverted', message: 'sold out' }],
  [
    'a string outside of its data',
    { data: outside },
    { kind: 'reverted', message: expect.stringContaining('0x08c379a0') },
  ],
  ['out of gas', {}, { kind: 'unrunnable', isCertain: true }],
  ['invalid opcode: INVALID', { code: -32_015 }, { kind: 'unrunnable', isCertain: true }],
  ['gas required exceeds allowance (50000000)', {}, { kind: 'unrunnable', isCertain: true }],
  ['EVM error MemoryOOG', { code: -32_603 }, { kind: 'unrunnable', isCertain: true }],
  ['BadInstruction', {}, { kind: 'unrunnable', isCertain: true }],
  ['StaticCallViolation', {}, { kind: 'unrunnable', isCertain: true }],
  ['execution aborted (timeout = 5s)', {}, { kind: 'unrunnable', isCertain: false }],
])(
  'the outcome of a call that fails with "%s" shows whether the contract is the cause',
  async (message, error, expected) => {
    const node = await openNode(refuseWith(message, error));
    expect(await node.call(CALL)).toMatchObject(expected);
  },
);

it.each([
  ['a string', encodeErrorResult({ abi: parseAbi(['error Error(string)']), args: ['sold out '.repeat(430_000)] })],
  ['an unknown error', `0xdeadbeef${'ab'.repeat(32).repeat(122_000)}`],
])('the message of a 3.9 MB revert with %s is truncated to 500 characters', async (_what, long) => {
  for (const error of [{ code: 3, data: long }, { data: { message: 'x', data: `Reverted ${long}` } }]) {
    const node = await openNode(refuseWith(`execution reverted: ${'priority fee '.repeat(300_000)}`, error));
    const outcome = await node.call(CALL);
    expect(outcome).toMatchObject({ kind: 'reverted', message: expect.stringMatching(/^(sold out|.*0xdeadbeef)/) });
    expect((outcome as { message: string }).message.length).toBeLessThanOrEqual(500);
  }
});

it.each([
  ['already known', 'known'],
  ['AlreadyKnown', 'known'],
  ['nonce too low: next nonce 7, tx nonce 4', 'nonce-used'],
  ['OldNonce, Current nonce: 7, nonce of rejected tx: 4', 'nonce-used'],
  ['replacement transaction underpriced', 'underpriced'],
  ['ReplacementNotAllowed', 'underpriced'],
  ['FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7', 'underpriced'],
  ['FeeTooLowToCompete', 'underpriced'],
  ['insufficient funds for gas * price + value', 'unfunded'],
  ['InsufficientFunds, Account balance: 0, cumulative cost: 7', 'unfunded'],
  ['GasLimitExceeded, Gas limit: 7, gas limit of rejected tx: 8', 'refused'],
  ['NonceGap, Future nonce. Expected nonce: 4', 'deferred'],
])('the response "%s" to signed bytes is classified as %s', async (message, kind) => {
  const node = await openNode(refuseWith(message));
  expect(await node.send(Buffer.alloc(1))).toEqual({ kind });
});

it.each([
  ['rate limit', { code: -32_005 }],
  ['missing trie node', {}],
  ['Internal error', { code: -32_603 }],
  ['header not found', { data: 'see 0x1234 at https://node.example' }],
  ['project is not allowed', { code: -32_600, data: { see: `0x${'ab'.repeat(32)}` } }],
])('a call that fails with "%s" is a node fault', async (message, error) => {
  const node = await openNode(refuseWith(message, error));
  await expect(node.call(CALL)).rejects.toMatchObject({ name: 'NodeFault' });
});
