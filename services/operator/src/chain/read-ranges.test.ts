import { type ChainNode, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { requestFromNodes } from './read-ranges.ts';

it('requestFromNodes requests a smaller range if a node times out but is reachable', async () => {
  const fail = () => Promise.reject(new NodeFault('unreachable', 'HTTP 504'));
  const responding = { name: 'one', chainId: async () => 1 } as ChainNode;
  const failing = { name: 'two', chainId: fail as ChainNode['chainId'] } as ChainNode;
  expect(await requestFromNodes([failing, responding], fail, true)).toBeNull();
  await expect(requestFromNodes([failing], fail, true)).rejects.toThrow(/no node/);
});
