import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { NodeFault } from '../node.ts';
import { createRpcNode } from './index.ts';

interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}
type Handler = (body: RpcRequest | RpcRequest[], response: ServerResponse, request: IncomingMessage) => void;

const SECRET = 'a-secret-of-the-provider';

async function openNode(handler: Handler, { login = '', timeoutMs = 5_000 } = {}) {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    handler(JSON.parse(text), response, request);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return createRpcNode({ name: 'demo-chain/1', url: `http://${login}127.0.0.1:${port}/v2/${SECRET}`, timeoutMs });
}
const send = (response: ServerResponse, body: unknown) => void response.end(JSON.stringify(body));
const refuse =
  (message: string, code = -32000): Handler =>
  (body, response) =>
    send(response, { jsonrpc: '2.0', id: (body as RpcRequest).id, error: { code, message } });
/** Some nodes respond to a batch with a single error that has the first call's id. */
const BATCH_TOO_LARGE = { jsonrpc: '2.0', id: 1, error: { code: -32600, message: 'batch too large' } };
const hash = (digits: string) => `0x${digits.repeat(32)}`;
const blockAt = (number: number) => ({
  number: `0x${number.toString(16)}`,
  hash: hash('AA'),
  parentHash: hash('bb'),
  timestamp: '0x5',
  logsBloom: `0x${'00'.repeat(256)}`,
});
const respondWithBlocks: Handler = (body, response) => {
  const one = ({ id, params }: RpcRequest) => ({ jsonrpc: '2.0', id, result: blockAt(Number(params[0])) });
  send(response, Array.isArray(body) ? body.map(one).toReversed() : one(body));
};
const faultOf = async (requested: Promise<unknown>): Promise<NodeFault> => {
  const fault = await requested.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(fault).toBeInstanceOf(NodeFault);
  expect(JSON.stringify([String(fault), (fault as Error).stack])).not.toContain(SECRET);
  return fault as NodeFault;
};

it('the node requests many blocks in batches and matches responses by id', async () => {
  const sizes: number[] = [];
  const node = await openNode((body, ...rest) => {
    sizes.push(Array.isArray(body) ? body.length : 1);
    respondWithBlocks(body, ...rest);
  });
  const blocks = await node.blocks(5, 124);
  expect(blocks.map(({ number }) => number)).toEqual(Array.from({ length: 120 }, (_, index) => 5 + index));
  expect(blocks[0]).toMatchObject({ hash: hash('aa'), timestampS: 5 });
  expect(sizes).toEqual([50, 50, 20]);
});

it.each([
  [
    'is rejected as too large',
    (response: ServerResponse) => void response.writeHead(413).end('<html>too large</html>'),
  ],
  ['fails with a list of one error', (response: ServerResponse) => send(response, [BATCH_TOO_LARGE])],
  [
    'fails with a list of one error and an error status',
    (response: ServerResponse) => void response.writeHead(400).end(JSON.stringify([BATCH_TOO_LARGE])),
  ],
])('a node receives single requests after a batch that %s', async (_what, refuseBatch) => {
  let batches = 0;
  const node = await openNode((body, response, request) => {
    if (!Array.isArray(body)) return respondWithBlocks(body, response, request);
    batches++;
    refuseBatch(response);
  });
  expect(await node.blocks(1, 120)).toHaveLength(120);
  expect(await node.blocks(1, 3)).toHaveLength(3);
  expect(batches).toBe(1);
});

it('a node that rate-limits a batch is busy, and still receives batches later', async () => {
  const handlers: Handler[] = [
    (_, response) => send(response, [{ jsonrpc: '2.0', id: 1, error: { code: 1, message: 'rate limit reached' } }]),
    respondWithBlocks,
  ];
  const sizes: number[] = [];
  const node = await openNode((body, ...rest) => {
    sizes.push(Array.isArray(body) ? body.length : 1);
    handlers[Math.min(sizes.length, 2) - 1]!(body, ...rest);
  });
  expect((await faultOf(node.blocks(1, 3))).kind).toBe('busy');
  expect(await node.blocks(1, 3)).toHaveLength(3);
  expect(sizes).toEqual([3, 3]);
});

it.each([
  ['query returned more than 10000 results', 'too-large'],
  ['block range is too wide', 'too-large'],
  ['Log response size exceeded', 'too-large'],
  ['query timeout exceeded', 'too-large'],
  ['ranges over 10000 blocks are not supported on freetier', 'too-large'],
  ['failed to generate logs', 'unreachable'],
  ['rate limit reached', 'busy'],
  ['your app has exceeded its compute units per second capacity', 'busy'],
  ['Too Many Requests', 'busy'],
  ['eth_getLogs: blocks greater than 2000 are not available, query exceeds max results', 'too-large'],
  ['unknown block', 'behind'],
  ['header not found', 'behind'],
  [`something at https://node.example/${SECRET}`, 'unreachable'],
])('a node error with the message "%s" is classified as %s', async (message, kind) => {
  const node = await openNode(refuse(message));
  expect((await faultOf(node.logsIn(1, 2))).kind).toBe(kind);
});

it('the fault for a busy node contains the Retry-After time', async () => {
  const node = await openNode((_, response) => void response.writeHead(429, { 'retry-after': '7' }).end('slow down'));
  expect(await faultOf(node.block('latest'))).toMatchObject({ kind: 'busy', retryAfterMs: 7_000 });
});

it.each([
  ['is truncated', '{"jsonrpc":"2.0","id":1,"resu'],
  ['is not JSON', '<html>502</html>'],
  ['has neither result nor error', '{"jsonrpc":"2.0","id":1}'],
  ['is not a block', '{"jsonrpc":"2.0","id":1,"result":7}'],
  ['has an invalid hash', '{"jsonrpc":"2.0","id":1,"result":{"number":"0x1","hash":"0x12"}}'],
])('a node is unreachable if its response %s', async (_what, text) => {
  const node = await openNode((_, response) => void response.end(text));
  expect((await faultOf(node.block('latest'))).kind).toBe('unreachable');
});

it('a response with the wrong block is inconsistent', async () => {
  const node = await openNode((_, response) => send(response, { jsonrpc: '2.0', id: 1, result: blockAt(9) }));
  expect((await faultOf(node.block(8))).kind).toBe('inconsistent');
});

it('the fault for a node that times out or is unavailable does not contain its URL', async () => {
  let requested = 0;
  const silent = await openNode(() => void requested++, { timeoutMs: 100 });
  expect(await faultOf(silent.chainId())).toMatchObject({ kind: 'timeout', message: 'the request timed out' });
  expect(requested, 'the number of requests').toBe(1);
  const absent = createRpcNode({ name: 'x', url: `http://127.0.0.1:1/${SECRET}` });
  expect((await faultOf(absent.chainId())).message).toMatch(/^cannot reach the node/);
  const unreachableNode = createRpcNode({ name: 'x', url: `http://${SECRET}.invalid/` });
  expect((await faultOf(unreachableNode.chainId())).kind).toBe('unreachable');
});

it("credentials in a node's URL are sent in a header", async () => {
  const node = await openNode(
    (body, response, { headers }) => {
      expect(headers.authorization).toBe(`Basic ${Buffer.from('ada:pass word').toString('base64')}`);
      send(response, { jsonrpc: '2.0', id: (body as RpcRequest).id, result: '0x7a69' });
    },
    { login: 'ada:pass%20word@' },
  );
  expect(await node.chainId()).toBe(31337);
});

const call = { to: `0x${'a1'.repeat(20)}`, data: '0x06fdde03' };

it.each([
  [3, 'execution reverted: rate limit, too many requests'],
  [-32000, 'execution reverted'],
  [-32000, 'out of gas'],
  [-32000, 'invalid opcode: INVALID'],
  [-32000, 'stack underflow (0 <=> 1)'],
  [-32000, 'stack limit reached 1024 (1023)'],
  [-32000, 'invalid jump destination'],
  [-32000, 'write protection'],
  [-32000, 'return data out of bounds'],
  [-32000, 'max call depth exceeded'],
  [-32603, 'EVM error: InvalidFEOpcode'],
  [-32603, 'EVM error: OpcodeNotFound'],
  [-32603, 'EVM error OutOfGas'],
  [-32603, 'EVM error MemoryOOG'],
  [-32603, 'EVM error MemoryLimitOOG'],
  [-32603, 'EVM error: StackUnderflow'],
  [-32603, 'EVM error: StateChangeDuringStaticCall'],
  [-32003, 'out of gas: gas exhausted during memory expansion: 1000000'],
  [-32015, 'VM execution error.'],
  [-32000, 'BadInstruction'],
  [-32000, 'OutOfGas'],
  [-32000, 'StaticCallViolation'],
  [-32000, 'AccessViolation'],
  [-32000, 'Execution reverted (not a token)'],
  [-32000, 'Transaction processing could not be completed due to an exception (Invalid opcode: 0xfe)'],
  [-32603, 'Internal error'],
  [-32603, 'VM Exception while processing transaction: revert'],
])('a contract call that returns error %i "%s" counts as a failed contract', async (code, message) => {
  const node = await openNode(refuse(message, code));
  expect(await node.calls([call])).toEqual([null]);
});

it.each([
  [-32005, 'rate limit', 'busy'],
  [-32000, 'header not found', 'behind'],
  [-32002, 'request timed out', 'too-large'],
  [-32000, 'execution aborted (timeout = 5s)', 'too-large'],
  [-32603, 'EVM error: FatalExternalError', 'unreachable'],
  [-32603, 'database is closed', 'unreachable'],
  [-32600, 'the plan limit is exceeded, and requests are reverted to the free plan', 'too-large'],
])('a contract call that returns error %i "%s" counts as a node fault', async (code, message, kind) => {
  const node = await openNode(refuse(message, code));
  expect(await node.calls([call])).toMatchObject([{ name: 'NodeFault', kind }]);
});

it('contract calls have a gas limit, and a failed call does not affect other calls', async () => {
  const node = await openNode((body, response) => {
    const [one, other] = body as RpcRequest[];
    expect(one!.params).toEqual([{ ...call, gas: '0xf4240' }, 'latest']);
    send(response, [
      { jsonrpc: '2.0', id: one!.id, error: { code: -32000, message: 'header not found' } },
      { jsonrpc: '2.0', id: other!.id, result: '0x12' },
    ]);
  });
  expect(await node.calls([call, call])).toMatchObject([{ kind: 'behind' }, '0x12']);
});

it('contract calls fail with too-large if a response exceeds 8 MiB', async () => {
  const node = await openNode((body, response) =>
    send(response, { jsonrpc: '2.0', id: (body as RpcRequest).id, result: `0x${'00'.repeat(4_200_000)}` }),
  );
  expect((await faultOf(node.calls([call]))).kind).toBe('too-large');
});
