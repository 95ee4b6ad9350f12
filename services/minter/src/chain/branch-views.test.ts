import { createHash } from 'node:crypto';
import { NodeFault, type RpcCall } from '@playline/chain';
import type { MintTransactionRecord } from '@playline/contracts';
import { createRandom } from '@playline/testkit/random';
import { expect, it } from 'vitest';
import type { ChainHead } from '../ports.ts';
import { findOutcome } from '../steps/settle-nonces.ts';
import type { Finality } from './rpc-node.ts';
import { createRpcNode } from './rpc-node.ts';

interface Block {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
}

interface Branch {
  readonly blocks: readonly Block[];
  readonly mintedAt: number;
}

const hashOf = (text: string) => `0x${createHash('sha256').update(text).digest('hex')}`;
const quantity = (number: number) => `0x${number.toString(16)}`;
const HASH = hashOf('transaction');
const SIGNER = `0x${'51'.repeat(20)}`;

/** Extends a branch up to the given block number, with blocks that no other branch has. */
function extend(name: string, stem: readonly Block[], to: number): readonly Block[] {
  const blocks = [...stem];
  for (let number = stem.length; number <= to; number++)
    blocks.push({ number, hash: hashOf(`${name} ${number}`), parentHash: blocks.at(-1)?.hash ?? hashOf('none') });
  return blocks;
}

const toJson = ({ number, ...rest }: Block, transactions: unknown[] = []) => ({
  ...rest,
  number: quantity(number),
  transactions,
});

function responseOf({ blocks, mintedAt }: Branch, { method, params: [at, isFull] }: RpcCall): unknown {
  const minted = blocks[mintedAt];
  if (method === 'eth_getTransactionReceipt')
    return minted === undefined
      ? null
      : { status: '0x1', blockNumber: quantity(mintedAt), blockHash: minted.hash, logs: [] };
  if (method === 'eth_getTransactionCount') return Number(isFull) >= mintedAt ? '0x1' : '0x0';
  const found =
    method === 'eth_getBlockByHash'
      ? blocks.find(({ hash }) => hash === at)
      : at === 'latest'
        ? blocks.at(-1)
        : blocks[at === 'finalized' ? blocks.length - 9 : Number(at)];
  if (found === undefined) return null;
  const transaction = { hash: HASH, from: SIGNER, nonce: '0x0' };
  return toJson(found, isFull === true && found.number === mintedAt ? [transaction] : []);
}

interface NodeOptions {
  /** Selects the branch for a response. Requests are counted from 0, including each request in a batch. */
  readonly branchOf: (request: number) => Branch;
  readonly finality?: Finality;
  readonly batchFault?: NodeFault | null;
}

function openNode({ branchOf, finality = 'finalized', batchFault = null }: NodeOptions) {
  const requested: string[] = [];
  const respond = (request: RpcCall) => responseOf(branchOf(requested.push(request.method) - 1), request);
  const node = createRpcNode({
    call: async (method, params) => respond({ method, params }),
    callBatch: async (requests) => {
      if (batchFault !== null) throw batchFault;
      return requests.map(respond);
    },
    finality,
  });
  return { node, requested };
}

const NO_BATCHES = new NodeFault('unreachable', 'the node does not support batches');
const SHARED_BLOCKS = extend('stem', [], 80);
const FINAL: Branch = { blocks: extend('final', SHARED_BLOCKS, 110), mintedAt: 95 };
/** Diverged before the block that contains the transaction, and was abandoned later. */
const ABANDONED: Branch = { blocks: extend('abandoned', SHARED_BLOCKS, 104), mintedAt: 90 };
const HEAD: ChainHead = {
  number: 110,
  finalized: 102,
  finalizedHash: FINAL.blocks[102]!.hash,
  baseFee: 0n,
  knownHash: null,
};
const VARIANTS = [{ hash: Buffer.from(HASH.slice(2), 'hex') } as MintTransactionRecord];
const outcomeOf = (parts: NodeOptions) => findOutcome(openNode(parts).node, VARIANTS, HEAD);

it('the node derives the final block from the latest block in the same response', async () => {
  const { node } = openNode({ branchOf: (request) => (request === 0 ? FINAL : ABANDONED), finality: 12 });
  expect(await node.head()).toMatchObject({ number: 104, finalized: 92, finalizedHash: ABANDONED.blocks[92]!.hash });
});

it('reading the head fails while the latest block keeps moving back', async () => {
  const falling = (request: number) => ({ ...FINAL, blocks: FINAL.blocks.slice(0, 100 - request) });
  await expect(openNode({ branchOf: falling, finality: 12 }).node.head()).rejects.toThrow('keeps moving back');
});

it('reading the head fails if the latest block is below the final block', async () => {
  const ahead = { ...FINAL, blocks: FINAL.blocks.slice(0, 60) };
  const { node } = openNode({ branchOf: (request) => (request === 0 ? FINAL : ahead) });
  await expect(node.head()).rejects.toThrow('reports block 102 as final');
});

it.each(['finalized', 12] as const)(
  'the head includes the hash of the previous final block (finality: %s)',
  async (finality) => {
    const { node } = openNode({ branchOf: () => FINAL, finality });
    expect(await node.head(100)).toMatchObject({ number: 110, knownHash: FINAL.blocks[100]!.hash });
    expect(await node.head(111)).toMatchObject({ knownHash: null });
  },
);

it("without batches, the final block is always on the head's branch, even if two nodes alternate", async () => {
  const random = createRandom(1);
  const { node } = openNode({
    branchOf: () => (random.chance(0.5) ? FINAL : ABANDONED),
    finality: 12,
    batchFault: NO_BATCHES,
  });
  const seen = new Set<number>();
  for (let at = 0; at < 200; at++) {
    const head = await node.head().catch(() => null);
    if (head === null) continue;
    seen.add(head.number);
    const { blocks } = head.number === 110 ? FINAL : ABANDONED;
    expect(head.finalizedHash).toBe(blocks[head.number - 12]!.hash);
  }
  expect(seen).toEqual(new Set([110, 104]));
});

it('a receipt is not final if the node switches to the final branch within a batch', async () => {
  // The first request finds the receipt. The last request in the batch receives its response from the final branch.
  const switchAt = (last: number) => ({ branchOf: (request: number) => (request < last ? ABANDONED : FINAL) });
  for (const last of [2, 3]) await expect(outcomeOf(switchAt(last))).rejects.toThrow('a different final block 102');
  expect(await outcomeOf(switchAt(0))).toMatchObject({ kind: 'mined', isFinal: true, receipt: { blockNumber: 95 } });
});

it.each([NO_BATCHES, new NodeFault('too-large', 'the node rejected the request as too large')])(
  'a receipt becomes final on a node that does not support batches (%s)',
  async (batchFault) => {
    const outcome = await outcomeOf({ branchOf: () => FINAL, batchFault });
    expect(outcome).toMatchObject({ kind: 'mined', isFinal: true, receipt: { blockHash: FINAL.blocks[95]!.hash } });
  },
);

it('a receipt on an abandoned branch never becomes final, even if two nodes without batches alternate', async () => {
  const random = createRandom(2);
  let finalCount = 0;
  for (let at = 0; at < 2_000; at++) {
    const branchOf = () => (random.chance(0.9) ? FINAL : ABANDONED);
    const outcome = await outcomeOf({ branchOf, batchFault: NO_BATCHES }).catch(() => null);
    if (outcome?.kind !== 'mined' || !outcome.isFinal) continue;
    finalCount++;
    expect(outcome.receipt.blockHash).toBe(FINAL.blocks[95]!.hash);
  }
  expect(finalCount).toBeGreaterThan(50);
});

it('without batches, proving a receipt takes one request per later block, and each block is read once', async () => {
  const { node, requested } = openNode({ branchOf: () => FINAL, batchFault: NO_BATCHES });
  const byHash = () => requested.filter((method) => method === 'eth_getBlockByHash').length;
  await node.viewOf(HASH, [95, 102]);
  expect(byHash()).toBe(7);
  await node.viewOf(HASH, [94, 104]);
  expect(byHash()).toBe(10);
});

it('an old receipt is proved over several turns, up to a maximum distance', async () => {
  const long = { blocks: extend('long', [], 21_000), mintedAt: 5 };
  const { node } = openNode({ branchOf: () => long, batchFault: NO_BATCHES });
  await expect(node.viewOf(HASH, [5, 900])).rejects.toThrow('895 blocks must be read one by one; reading continues');
  expect((await node.viewOf(HASH, [5, 901])).blockHashes[0]).toBe(long.blocks[5]!.hash);
  await expect(node.viewOf(HASH, [5, 20_006])).rejects.toThrow('which is too many');
});

const horizon = { number: 102, hash: FINAL.blocks[102]!.hash };
const used = { address: SIGNER, nonce: 0, horizon };

it.each([null, NO_BATCHES])('a used nonce is looked up on the final branch (batch fault: %s)', async (batchFault) => {
  expect(await openNode({ branchOf: () => FINAL, batchFault }).node.hashByNonce(used)).toBe(HASH);
  await expect(openNode({ branchOf: () => ABANDONED, batchFault }).node.hashByNonce(used)).rejects.toThrow(
    'a different final block',
  );
});

it.each([null, NO_BATCHES])(
  'a transaction that used the nonce on another branch is ignored (batch fault: %s)',
  async (batchFault) => {
    const other = { blocks: extend('other', SHARED_BLOCKS, 110), mintedAt: 95 };
    const whole = openNode({ branchOf: () => FINAL, batchFault });
    await whole.node.hashByNonce(used);
    const last = whole.requested.length - 1;
    const mixed = openNode({ branchOf: (request) => (request === last ? other : FINAL), batchFault });
    expect(await mixed.node.hashByNonce(used)).toBeNull();
    expect(mixed.requested).toEqual(whole.requested);
  },
);

it.each([null, NO_BATCHES])(
  'transaction counts are read in the given order, starting at the final block (batch fault: %s)',
  async (batchFault) => {
    const { node } = openNode({
      branchOf: (request) => ({ ...FINAL, mintedAt: request === 0 ? 111 : 95 }),
      batchFault,
    });
    expect(await node.nonceCounts(SIGNER, [102, 110])).toEqual([0, 1]);
  },
);
