import { createRpcBatches, createRpcClient } from '@playline/chain/rpc';
import { openTestChain, type TestChain } from '@playline/testkit/chain';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { encodeFunctionData } from 'viem/utils';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mintedTokensOf } from '../steps/settle-nonces.ts';
import { ownerOf } from '../test/mint-requests.ts';
import { createJsonRpc, createJsonRpcBatches } from './json-rpc.ts';
import { MINT_ABI } from './mint-calls.ts';
import { createRpcNode } from './rpc-node.ts';

let chain: TestChain;
let contracts: Awaited<ReturnType<TestChain['deployDemo']>>;
const account = privateKeyToAccount(generatePrivateKey());
const from = account.address.toLowerCase();

beforeAll(async () => {
  chain = await openTestChain();
  contracts = await chain.deployDemo(account.address);
  await chain.mine(8);
});
afterAll(() => chain.close());

const nodeAt = (url: string, finality: 'finalized' | number) => {
  const callBatch = createJsonRpcBatches(createRpcBatches({ url }));
  return createRpcNode({ call: createJsonRpc(createRpcClient({ url })), callBatch, finality });
};
const nodeOf = (finality: 'finalized' | number = 'finalized') => nodeAt(chain.rpc, finality);

const mintOf = (tokenId: bigint, owner = ownerOf(1)) =>
  encodeFunctionData({
    abi: MINT_ABI,
    functionName: 'mintBatch',
    args: [[{ to: owner as `0x${string}`, tokenIds: [tokenId] }]],
  });

async function sign(
  nonce: number,
  overrides: { data?: `0x${string}`; gas?: bigint; fee?: bigint } = {},
): Promise<Buffer> {
  const { data = mintOf(BigInt(nonce) + 100n), gas = 300_000n, fee = 10n ** 10n } = overrides;
  const signed = await account.signTransaction({
    type: 'eip1559',
    chainId: chain.id,
    nonce,
    to: contracts.erc721,
    data,
    gas,
    maxFeePerGas: fee,
    maxPriorityFeePerGas: fee,
  });
  return Buffer.from(signed.slice(2), 'hex');
}

it('the node classifies signed bytes as accepted, known, nonce-used, underpriced, refused or unfunded', async () => {
  const node = nodeOf();
  const first = await sign(0);
  expect(await node.send(first)).toEqual({ kind: 'accepted' });
  expect(await node.send(first)).toEqual({ kind: 'known' });
  expect(await node.send(await sign(0, { fee: 10n ** 10n - 1n }))).toMatchObject({ kind: 'underpriced' });
  expect(await node.nonceCounts(from, ['pending'])).toEqual([1]);
  await chain.mine(1);
  expect(await node.nonceCounts(from, ['latest'])).toEqual([1]);
  expect(await node.send(await sign(0, { fee: 10n ** 11n }))).toEqual({ kind: 'nonce-used' });
  expect(await node.send(await sign(1, { gas: 1_000n }))).toMatchObject({ kind: 'refused' });
  expect(await node.send(await sign(1, { gas: 10n ** 12n }))).toMatchObject({ kind: 'refused' });
  expect(await node.send(await sign(1, { fee: 10n ** 17n }))).toMatchObject({ kind: 'unfunded' });
});

it("the node returns a transaction's events, and the final block as reported or by depth", async () => {
  const node = nodeOf();
  const bytes = await sign(1, { data: mintOf(1n, ownerOf(5)) });
  await node.send(bytes);
  await chain.mine(1);
  const hash = await chain.client.getBlock({ blockTag: 'latest' }).then(({ transactions }) => transactions[0]!);
  const receipt = (await node.receiptOf(hash))!;
  expect(receipt.isSuccess).toBe(true);
  expect(mintedTokensOf(receipt, contracts.erc721)).toEqual([
    { owner: ownerOf(5), tokenId: '1', amount: '1', logIndex: 0, item: 0 },
  ]);
  expect(await node.blockHashOf(receipt.blockNumber)).toBe(receipt.blockHash);
  expect(await node.blockHashOf(receipt.blockNumber + 1)).toBeNull();
  const { finalized, finalizedHash } = await nodeOf(2).head();
  expect(await node.blockHashOf(finalized)).toBe(finalizedHash);
  expect(await node.chainId()).toBe(chain.id);
  expect(await node.head()).toMatchObject({ number: receipt.blockNumber, finalized: receipt.blockNumber - 4 });
  expect(await nodeOf(2).head()).toMatchObject({ finalized: receipt.blockNumber - 2 });
  const before = receipt.blockNumber - 1;
  expect(await node.nonceCounts(from, [before, receipt.blockNumber, 'latest', 'pending'])).toEqual([1, 2, 2, 2]);
});

it('the node returns a receipt and blocks from one response, and the transaction that used a nonce', async () => {
  const node = nodeOf();
  const head = await node.head();
  const { transactions, number, hash: blockHash } = await chain.client.getBlock({ blockTag: 'latest' });
  const { receipt, blockHashes } = await node.viewOf(transactions[0]!, [Number(number), Number(number) + 1]);
  expect([receipt?.blockHash, blockHashes]).toEqual([blockHash, [blockHash, null]]);
  const horizon = { number: head.number, hash: blockHash };
  expect(await node.hashByNonce({ address: from, nonce: 1, horizon })).toBe(transactions[0]);
  expect(await node.hashByNonce({ address: from, nonce: 2, horizon })).toBeNull();
  const first = await node.hashByNonce({ address: from, nonce: 0, horizon });
  expect((await node.receiptOf(first!))?.blockNumber).toBeLessThan(Number(number));
  const earlier = { number: Number(number) - 1, hash: (await node.blockHashOf(Number(number) - 1))! };
  expect(await node.hashByNonce({ address: from, nonce: 1, horizon: earlier })).toBeNull();
  const other = { number: head.number, hash: `0x${'11'.repeat(32)}` };
  await expect(node.hashByNonce({ address: from, nonce: 1, horizon: other })).rejects.toThrow('different final block');
});

it("the node returns the contract's own message for a rejected call", async () => {
  const node = nodeOf();
  const call = { from, to: contracts.erc721, data: mintOf(1n) };
  expect(await node.call(call)).toEqual({ kind: 'reverted', message: 'TokenAlreadyMinted(1)' });
  expect(await node.gasOf(call)).toMatchObject({ kind: 'reverted' });
  expect(await node.call({ ...call, data: mintOf(2n) })).toMatchObject({ kind: 'done' });
  expect(await node.call({ ...call, from: ownerOf(9), data: mintOf(2n) })).toEqual({
    kind: 'reverted',
    message: expect.stringContaining('AccessControlUnauthorizedAccount'),
  });
});
