import { ForkFault, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { NodePool } from './node-pool.ts';
import { createStateNode, MemoryChain } from './test/memory-chain.ts';

it("the pool reports a node's fork even if the next node is unavailable", async () => {
  const chain = new MemoryChain(2);
  const nodes = ['forked', 'stopped'].map((name) => createStateNode(name, 2, () => chain.state));
  const pool = new NodePool({ nodes, check: async () => {}, onFault: () => {}, nowMs: () => 0 });
  const fork = new ForkFault({ number: 1, hash: '0x' }, 'block 1 on the node differs from the known block');
  const requested = pool.use(async ({ name }) => {
    throw name === 'forked' ? fork : new NodeFault('unreachable', 'cannot reach the node');
  });
  await expect(requested).rejects.toMatchObject({ cause: fork, message: `no node responds: ${fork.message}` });
});
