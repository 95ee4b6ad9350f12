import { until } from '@playline/testkit';
import { openTestChain, type TestChain } from '@playline/testkit/chain';
import { parseEther, zeroHash } from 'viem';
import { afterEach, describe, expect, it } from 'vitest';
import { openBlockMaker } from './block-maker.ts';

const EPOCH_BLOCKS = 2;
const DEPTH = 2 * EPOCH_BLOCKS;
const BLOCK_MS = 50;

let chain: TestChain;
afterEach(() => chain?.close());

const readHead = () => chain.client.getBlockNumber();

async function sendPayment() {
  const [from, to] = chain.accounts;
  return chain.client.sendTransaction({ account: from!, to: to!, value: 1n });
}

async function waitBlocks(blocks: number) {
  const endAt = performance.now() + blocks * BLOCK_MS;
  await until('the time has passed', () => performance.now() > endAt);
}

/** Waits until all transactions are final and no blocks are created. @returns the latest block number */
async function waitForIdleHead(): Promise<bigint> {
  for (;;) {
    const head = await readHead();
    const numbers = Array.from({ length: DEPTH }, (_, back) => head - BigInt(back)).filter((number) => number > 0n);
    const blocks = await Promise.all(numbers.map((blockNumber) => chain.client.getBlock({ blockNumber })));
    const { pending } = await chain.client.getTxpoolStatus();
    await waitBlocks(10);
    const isBusy = pending > 0 || blocks.some(({ transactions }) => transactions.length > 0);
    if (!isBusy && head === (await readHead())) return head;
  }
}

describe('the block maker', () => {
  it('creates blocks only until a transaction is final', async () => {
    chain = await openTestChain({ mining: 'needed', blockMs: BLOCK_MS });
    await waitBlocks(10);
    expect(await readHead()).toBe(0n);
    const hash = await sendPayment();
    const { blockNumber } = await chain.client.waitForTransactionReceipt({ hash });
    const isFinal = async () => (await chain.client.getBlock({ blockTag: 'finalized' })).number >= blockNumber;
    await until('the transaction is final', isFinal);
    expect(await waitForIdleHead()).toBe(blockNumber + BigInt(DEPTH));
  });

  it('creates no blocks for a transaction that cannot be included', async () => {
    chain = await openTestChain({ mining: 'needed', blockMs: BLOCK_MS });
    const [from, to] = chain.accounts;
    // The nonce leaves a gap, so the transaction cannot be included.
    await chain.client.sendTransaction({ account: from!, to: to!, nonce: 7 });
    expect(await waitForIdleHead()).toBe(0n);
    await chain.client.waitForTransactionReceipt({ hash: await sendPayment() });
    expect(await waitForIdleHead()).toBe(BigInt(1 + DEPTH));
  });

  it('creates no blocks while the chain cannot be saved, and resumes afterwards', async () => {
    chain = await openTestChain();
    let [isFull, saved] = [false, -1];
    const save = async () => {
      if (isFull) throw new Error('no space');
      saved = await chain.save();
      return saved;
    };
    const errors: string[] = [];
    const onFault = (error: unknown) => void errors.push((error as Error).message);
    const maker = openBlockMaker({ rpc: chain.rpc, depth: DEPTH, blockMs: BLOCK_MS, save, onFault });
    try {
      await chain.client.waitForTransactionReceipt({ hash: await sendPayment() });
      const before = await waitForIdleHead();
      await until('the last block is saved', () => saved === Number(before));
      isFull = true;
      await sendPayment();
      await until('the error is reported', () =>
        errors.includes('no block is created while the chain cannot be saved'),
      );
      await waitBlocks(10);
      expect(await readHead()).toBeLessThan(before + BigInt(DEPTH));
      expect(errors).toContain('no space');
      isFull = false;
      await until('the transaction is final', async () => (await readHead()) >= before + 1n + BigInt(DEPTH));
    } finally {
      await maker.close();
    }
  });

  it('saves the last block even if saving takes longer than creating a block', async () => {
    chain = await openTestChain();
    let saved = -1;
    const save = async () => {
      const number = await chain.save();
      // Saving block 2 or 4 takes until the next block is created. The block after block 4 is the last one. On a slow
      // machine the block maker waits for the save first.
      const isFollowed = async () => (await readHead()) > number;
      if (number === 2 || number === 4) await until('the next block', isFollowed, 2_000).catch(() => {});
      saved = number;
      return number;
    };
    const maker = openBlockMaker({ rpc: chain.rpc, depth: DEPTH, blockMs: BLOCK_MS, save });
    try {
      await chain.client.waitForTransactionReceipt({ hash: await sendPayment() });
      const head = await waitForIdleHead();
      await until('the last block is saved', () => saved === Number(head), 5_000);
    } finally {
      await maker.close();
    }
  });

  it('loses no final blocks when the node is killed', async () => {
    chain = await openTestChain({ mining: 'needed', blockMs: BLOCK_MS });
    for (let round = 0; round < 3; round++) {
      const start = await readHead();
      await sendPayment();
      await until('some blocks were created', async () => (await readHead()) > start + BigInt(round));
      const [final, genesis] = await Promise.all([
        chain.client.getBlock({ blockTag: 'finalized' }),
        chain.client.getBlock({ blockNumber: 0n }),
      ]);
      await chain.kill();
      await chain.restart();
      expect((await chain.client.getBlock({ blockNumber: 0n })).hash).toBe(genesis.hash);
      expect((await chain.client.getBlock({ blockNumber: final.number! })).hash).toBe(final.hash);
    }
    await chain.client.waitForTransactionReceipt({ hash: await sendPayment() });
    await waitForIdleHead();
  });

  it('creates only the blocks that make final blocks readable after a restart of the node', async () => {
    chain = await openTestChain();
    let saved = -1;
    const save = async () => {
      saved = await chain.save();
      return saved;
    };
    const maker = openBlockMaker({ rpc: chain.rpc, depth: DEPTH, blockMs: BLOCK_MS, save });
    try {
      const contracts = await chain.deployDemo(chain.accounts[1]);
      const head = await waitForIdleHead();
      await until('the last block is saved', () => saved === Number(head));
      await chain.kill();
      await chain.restart();
      const [address] = chain.accounts;
      await until('the final block is readable', async () => {
        const { number } = await chain.client.getBlock({ blockTag: 'finalized' });
        return (
          number === head && (await chain.client.getTransactionCount({ address: address!, blockTag: 'finalized' }))
        );
      });
      expect(await chain.deployDemo(chain.accounts[1])).toEqual(contracts);
      expect(await waitForIdleHead()).toBe(head + BigInt(DEPTH));
    } finally {
      await maker.close();
    }
  });
});

describe('the test chain', () => {
  it('creates blocks on request and can replace the latest blocks', async () => {
    chain = await openTestChain();
    await chain.mine(3);
    const hash = await sendPayment();
    expect(await readHead()).toBe(3n);
    await chain.mine();
    const { blockHash } = await chain.client.getTransactionReceipt({ hash });
    await chain.mine(1);
    await chain.reorg(2);
    expect(await readHead()).toBe(5n);
    const replaced = await chain.client.getBlock({ blockNumber: 4n });
    expect(replaced.hash).not.toBe(blockHash);
    expect(replaced.parentHash).not.toBe(zeroHash);
    await expect(chain.client.getTransactionReceipt({ hash })).rejects.toThrow();
  });

  it('retains only saved blocks after a kill', async () => {
    chain = await openTestChain();
    const [, to] = chain.accounts;
    await chain.send({ to: to!, value: parseEther('1') });
    const balance = await chain.client.getBalance({ address: to! });
    await chain.save();
    await chain.send({ to: to!, value: parseEther('1') });
    await chain.kill();
    await expect(readHead()).rejects.toThrow();
    await chain.restart();
    expect([await readHead(), await chain.client.getBalance({ address: to! })]).toEqual([1n, balance]);
  });
});
