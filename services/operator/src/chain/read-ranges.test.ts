import { type ChainNode, NodeFault } from '@playline/chain';
import { expect, it } from 'vitest';
import { requestFromNodes } from './read-ranges.ts';

it('requestFromNodes requests less from a node that fails but is reachable', async () => {
  const fail = () => Promise.reject(new NodeFault('unreachable', 'HTTP 504'));
  const answers = { name: 'one', chainId: async () => 1 } as ChainNode;
  const gone = { name: 'two', chainId: fail as ChainNode['chainId'] } as ChainNode;
  expect(await requestFromNodes([gone, answers], fail, true)).toBeNull();
  await expect(requestFromNodes([gone], fail, true)).rejects.toThrow(/no node/);
});
