import { createRandom } from '@playline/testkit/random';
import { describe, expect, it } from 'vitest';
import type { ChainNode } from '../ports.ts';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { MemoryChain } from '../test/memory-chain.ts';
import { MemoryNode } from '../test/memory-node.ts';
import { CONTRACTS, SWORDS, toAddress } from '../test/mint-requests.ts';

/** A node that left the branch of the others after their first block. */
function openFork(): MemoryNode {
  const fork = new MemoryNode(new MemoryChain(CONTRACTS), { depth: DEPTH });
  fork.chain.setRole(SWORDS, ADDRESS, true);
  fork.mine();
  // The hash of a block depends on how many blocks were made before, so this gives another branch.
  fork.mine();
  fork.chain.leave(1);
  return fork;
}

/** One address with two nodes behind it. The client cannot choose between them. */
function createBalancer(other: MemoryNode) {
  const [balancer, random] = [{ isOn: false }, createRandom(1)];
  const choose = (node: MemoryNode) => (balancer.isOn && random.chance(0.5) ? other : node);
  const nodesOf = (node: MemoryNode): readonly ChainNode[] => [
    new Proxy<ChainNode>(node, { get: (_node, request: keyof ChainNode) => choose(node)[request] }),
  ];
  return { balancer, nodesOf };
}

describe('a lane whose node address is a load balancer over two nodes', () => {
  it.each([
    ['is on another branch', DEPTH - 1],
    ['ends behind the block of the receipt', 0],
  ])('treats nothing as final when one node %s, and mints once when both agree', async (_what, blocks) => {
    const fork = openFork();
    const { balancer, nodesOf } = createBalancer(fork);
    const world = createWorld(nodesOf);
    const { log, node, mine, last, takeOver, request, time } = world;
    const lane = await takeOver();
    await lane.take([request('a', { tokenId: '7' })]);
    await lane.turn();
    const { signedBytes, hash } = log.transactions[0]!;
    await fork.send(signedBytes);
    for (let at = 0; at < 1 + blocks; at++) fork.mine();
    expect(fork.chain.receiptOf(toAddress(hash))?.isSuccess).toBe(true);
    // On the final branch it is in no block.
    node.losePool();
    mine(DEPTH + 3);
    balancer.isOn = true;
    for (let at = 0; at < 500; at++) {
      time.ms += 100;
      await lane.turn().catch(() => {});
      expect(last()).toMatchObject({ status: 'pending' });
    }
    balancer.isOn = false;
    for (let at = 0; at < DEPTH + 4; at++) {
      time.ms += 10_000;
      await lane.turn();
      mine(1);
    }
    expect([last().status, world.tokens()]).toEqual(['succeeded', 1]);
  });
});
