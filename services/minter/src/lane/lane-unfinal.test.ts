import { NodeFault } from '@playline/chain';
import { describe, expect, it } from 'vitest';
import type { ChainNode } from '../ports.ts';
import { ADDRESS, createWorld, DEPTH } from '../test/lane-world.ts';
import { ownerOf, POTIONS } from '../test/mint-requests.ts';

const OPEN_MAX = 4;
type World = ReturnType<typeof createWorld>;

/** One asset for each of this many owners, each in a transaction of its own. */
async function begin(world: World, owners: number) {
  world.chain.setRole(POTIONS, ADDRESS, true);
  world.mine(1);
  const lane = await world.takeOver();
  const asset = { contract: POTIONS, tokenId: '1', amount: '1' };
  await lane.take(Array.from({ length: owners }, (_, at) => world.request(`a${at}`, { ...asset, owner: ownerOf(at) })));
  const pass = async (blocks: number) => {
    for (let at = 0; at < blocks; at++) {
      await lane.turn();
      world.mine(1);
      world.time.ms += 1_000;
    }
    await lane.turn();
  };
  return { lane, pass };
}

/** A node of which each question is told first. */
const watch = (node: ChainNode, onRequest: (request: keyof ChainNode) => void): ChainNode =>
  new Proxy(node, {
    get: (_node, request: keyof ChainNode) => {
      onRequest(request);
      return node[request];
    },
  });

const begun = ({ log }: World) => log.transactions.filter(({ kind }) => kind === 'mint').length;

describe('transactions that are in blocks but not final', () => {
  it('do not block others: with one transaction for each owner, no owner waits for finality', async () => {
    const world = createWorld(undefined, { openNoncesMax: OPEN_MAX });
    const { pass } = await begin(world, 30);
    await pass(DEPTH - 1);
    expect(begun(world)).toBe(DEPTH * OPEN_MAX);
    await pass(DEPTH + 10);
    expect(world.tokens()).toBe(30);
    expect(world.log.states.filter(({ status }) => status === 'succeeded')).toHaveLength(30);
  });

  it('never exceed the configured number', async () => {
    const world = createWorld(undefined, { openNoncesMax: OPEN_MAX, unfinalNoncesMax: 6 });
    const { pass } = await begin(world, 30);
    await pass(DEPTH - 1);
    expect(begun(world)).toBe(6);
    await pass(60);
    expect(world.tokens()).toBe(30);
  });

  it.each([1, DEPTH - 1])(
    'are sent again when the last %i blocks are replaced, and each reference id is minted once',
    async (count) => {
      const world = createWorld(undefined, { openNoncesMax: OPEN_MAX });
      const { pass, lane } = await begin(world, 20);
      await pass(DEPTH - 1);
      const before = begun(world);
      world.chain.leave(count);
      world.node.losePool();
      world.time.ms += 10_000;
      await lane.turn();
      const absent = lane.ledger.absentNonces.length;
      // More of them are in no block than may begin, so nothing new begins until they are in blocks again.
      expect(absent).toBe((count + 1) * OPEN_MAX);
      expect(world.node.poolSize).toBe(absent);
      expect(begun(world)).toBe(before);
      await pass(40);
      expect([world.tokens(), world.log.states.filter(({ status }) => status === 'succeeded').length]).toEqual([
        20, 20,
      ]);
    },
  );

  it('cost one request a turn while their blocks stay in the chain, however many there are', async () => {
    const requested: string[] = [];
    const world = createWorld((node) => [watch(node, (request) => requested.push(request))], { openNoncesMax: 30 });
    const { pass, lane } = await begin(world, 30);
    await pass(2);
    requested.splice(0);
    await lane.turn();
    expect(lane.ledger.openNonces).toHaveLength(30);
    expect(requested.filter((request) => request === 'receiptOf')).toEqual([]);
    expect(requested.length).toBeLessThan(10);
  });

  it('are looked for anew alone where their blocks are left, and not those of the blocks before', async () => {
    const requested: string[] = [];
    const world = createWorld((node) => [watch(node, (request) => requested.push(request))]);
    const { pass, lane } = await begin(world, 3 * OPEN_MAX);
    await pass(DEPTH - 1);
    world.chain.leave(1);
    requested.splice(0);
    await lane.turn();
    expect(requested.filter((request) => request === 'receiptOf')).toHaveLength(OPEN_MAX);
  });

  it('say so in their states, also when the node failed while others were looked for', async () => {
    let left = Number.POSITIVE_INFINITY;
    const world = createWorld((node) => [
      watch(node, (request) => {
        if (request === 'receiptOf' && --left === 0) throw new NodeFault('busy', 'asked too often');
      }),
    ]);
    const { lane } = await begin(world, 2);
    await lane.turn();
    world.mine(1);
    left = 2;
    await expect(lane.turn()).rejects.toThrow('asked too often');
    expect(world.last('a0')).toMatchObject({ stage: 'mined' });
    await lane.turn();
    expect(lane.ledger.absentNonces).toEqual([]);
  });
});
