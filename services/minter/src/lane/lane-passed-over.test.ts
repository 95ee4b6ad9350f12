import { expect, it } from 'vitest';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainNode } from '../ports.ts';
import { createWorld, DEPTH } from '../test/lane-world.ts';

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

it('a node that has another block in the place of the final one is passed over, also when nothing is to be settled', async () => {
  const other = { isHeard: false };
  const hash = `0x${'11'.repeat(32)}`;
  const world = createWorld((node) => [
    { ...node, head: async (known) => ({ ...(await node.head(known)), ...(other.isHeard && { knownHash: hash }) }) },
  ]);
  const lane = await world.takeOver();
  await lane.take([world.request('a', { tokenId: '1' })]);
  await lane.turn();
  world.mine(DEPTH + 2);
  await lane.turn();
  other.isHeard = true;
  await lane.take([world.request('b', { tokenId: '2' })]);
  await expect(lane.turn()).rejects.toThrow('another block 3 than the one that was final');
  expect(world.last('b')).toMatchObject({ stage: 'accepted' });
  other.isHeard = false;
  await lane.turn();
  expect(world.last('b')).toMatchObject({ stage: 'logged' });
});
