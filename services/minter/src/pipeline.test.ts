import { expect, it } from 'vitest';
import { logChainId } from './pipeline.ts';
import type { ChainNode } from './ports.ts';
import { createWorld } from './test/lane-world.ts';
import { CHAIN } from './test/mint-requests.ts';

it('a node with another chain id is named in the log once, although another node mints, and once more when it is right again', async () => {
  const lines: unknown[] = [];
  const push =
    (level: string) =>
    (...message: unknown[]) =>
      void lines.push([level, ...message]);
  const logger = { warn: push('warn'), info: push('info') };
  const other = { id: 1 };
  const logged = (node: ChainNode) =>
    logChainId({ ...node, chainId: async () => other.id }, { chain: CHAIN, chainId: 31_337, logger });
  const world = createWorld((node) => [logged(node), logged(node), node]);
  const lane = await world.takeOver();
  await lane.take([world.request('a')]);
  await lane.turn();
  expect(world.last()).toMatchObject({ stage: 'logged' });
  await lane.turn();
  const ids = { chain: CHAIN, wantedChainId: 31_337, answeredChainId: 1 };
  const warning = ['warn', ids, 'a node of the chain reports another chain id, and is not used'];
  // Two nodes have it; each is named once.
  expect(lines).toEqual([warning, warning]);
  const single = logged(world.node);
  await single.chainId();
  await single.chainId();
  other.id = 31_337;
  await single.chainId();
  await single.chainId();
  const right = { ...ids, answeredChainId: 31_337 };
  expect(lines.slice(2)).toEqual([warning, ['info', right, 'a node of the chain reports the right chain id again']]);
});
