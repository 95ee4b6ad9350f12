import { expect, it } from 'vitest';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainNode } from '../ports.ts';
import { createWorld } from '../test/lane-world.ts';

/** A node that refuses one kind of question. */
const refusing = (node: ChainNode): ChainNode => ({
  ...node,
  receiptOf: () => Promise.reject(new NodeRefusal({ code: -32_000, message: 'indexing at a-secret', data: null })),
});

async function mint(nodesOf: (node: ChainNode) => readonly ChainNode[]) {
  const world = createWorld(nodesOf);
  const lane = await world.takeOver();
  await lane.take([world.request('a', { tokenId: '1' })]);
  for (let turns = 0; turns < 20; turns++) {
    world.time.ms += 10_000;
    world.mine(1);
    await lane.turn();
  }
  return world;
}

it('a node that refuses one question is passed over, and the next one answers it', async () => {
  expect((await mint((node) => [refusing(node), node])).last()).toMatchObject({ status: 'succeeded' });
});

it('what waits because its node refuses a question says so in words that are ours', async () => {
  const { reason } = (await mint((node) => [refusing(node)])).last();
  expect(reason).toMatch(/cannot be read: the node of the chain refused what it was asked \(code -32000\)/);
});
