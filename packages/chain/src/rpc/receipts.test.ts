import { expect, it } from 'vitest';
import { NodeFault } from '../node.ts';
import { createRpcNode } from './index.ts';

interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

const hash = (digits: string) => `0x${digits.repeat(32)}`;
const BLOCK = hash('aa');
const TRANSACTIONS = [hash('01'), hash('02'), hash('03')];
const logOf = (index: number) => ({
  blockNumber: '0x5',
  blockHash: BLOCK,
  transactionHash: TRANSACTIONS[index],
  address: `0x${'a1'.repeat(20)}`,
  topics: [hash('cc')],
  data: '0x',
  transactionIndex: `0x${index}`,
  logIndex: `0x${index}`,
});
const receiptOf = (index: number) => ({ blockHash: BLOCK, transactionHash: TRANSACTIONS[index], logs: [logOf(index)] });
const RECEIPTS = [0, 1, 2].map(receiptOf);
const tooLong = () => {
  throw new Error('response size exceeded');
};

interface Script {
  readonly receipts?: () => unknown;
  readonly receipt?: (index: number) => unknown;
  /** Called for each request in a batch; may throw. */
  readonly batch?: () => void;
}

function createNode({ receipts = () => RECEIPTS, receipt = receiptOf, batch = () => {} }: Script) {
  const resultOf = ({ method, params }: RpcRequest) => {
    if (method === 'eth_getBlockByHash') return { hash: BLOCK, transactions: TRANSACTIONS };
    return method === 'eth_getBlockReceipts' ? receipts() : receipt(TRANSACTIONS.indexOf(String(params[0])));
  };
  const respond = (request: RpcRequest, check = () => {}) => {
    const envelope = { jsonrpc: '2.0', id: request.id };
    try {
      check();
      return { ...envelope, result: resultOf(request) };
    } catch (fault) {
      return { ...envelope, error: { code: -32005, message: (fault as Error).message } };
    }
  };
  const request = async (_url: unknown, init?: { body?: unknown }) => {
    const body = JSON.parse(String(init?.body)) as RpcRequest | RpcRequest[];
    return new Response(JSON.stringify(Array.isArray(body) ? body.map((each) => respond(each, batch)) : respond(body)));
  };
  return createRpcNode({ name: 'test', url: 'http://127.0.0.1', fetch: request as typeof fetch });
}
const indicesOf = async (script: Script) =>
  (await createNode(script).logsByReceipts(BLOCK)).map(({ logIndex }) => logIndex);

it('the node reads logs from block receipts, a batch of transaction receipts, or single receipts', async () => {
  expect(await indicesOf({ receipt: tooLong })).toEqual([0, 1, 2]);
  expect(await indicesOf({ receipts: tooLong })).toEqual([0, 1, 2]);
  expect(await indicesOf({ receipts: tooLong, batch: tooLong })).toEqual([0, 1, 2]);
});

it.each([
  ['the last receipt is missing', RECEIPTS.slice(0, 2)],
  ['a receipt is missing and another receipt is repeated', [RECEIPTS[0], RECEIPTS[1], RECEIPTS[1]]],
  ['an extra receipt without logs replaces the last receipt', [RECEIPTS[0], RECEIPTS[1], { ...RECEIPTS[0], logs: [] }]],
  ['the receipts are in another order', RECEIPTS.toReversed()],
  ['a receipt belongs to another block', [RECEIPTS[0], RECEIPTS[1], { ...RECEIPTS[2], blockHash: hash('bb') }]],
  [
    'a receipt contains a log from another transaction',
    [RECEIPTS[0], RECEIPTS[1], { ...RECEIPTS[2], logs: [logOf(0)] }],
  ],
])("the node's receipts are rejected if %s", async (_what, receipts) => {
  // If block receipts are wrong, single receipts are requested, which are wrong as well.
  const wrong = { receipts: () => receipts, receipt: (index: number) => receipts[index] ?? receipts[0] };
  const fault = await indicesOf(wrong).catch((thrown: unknown) => thrown);
  expect(fault).toBeInstanceOf(NodeFault);
  expect(fault).toMatchObject({ kind: 'inconsistent' });
});

it('the node requests transaction receipts if the block receipts are truncated', async () => {
  expect(await indicesOf({ receipts: () => RECEIPTS.slice(0, 2) })).toEqual([0, 1, 2]);
});
