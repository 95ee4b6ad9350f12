import type { Logger } from '@playline/runtime';
import type { ChainNode } from '../ports.ts';

export interface ToldChain {
  /** Name of the chain. The address of the node may contain a secret. */
  readonly chain: string;
  readonly chainId: number;
  readonly logger: Pick<Logger, 'warn' | 'info'>;
}

/** Wraps a node and logs once when it begins to report another chain id, and when it reports the right one again. */
export function tellChainId(node: ChainNode, { chain, chainId: wanted, logger }: ToldChain): ChainNode {
  let last = wanted;
  return {
    ...node,
    chainId: async () => {
      const answered = await node.chainId();
      if (answered !== last) {
        const said = { chain, wantedChainId: wanted, answeredChainId: answered };
        if (answered === wanted) logger.info(said, 'a node of the chain reports the right chain id again');
        else logger.warn(said, 'a node of the chain reports another chain id, and is not used');
      }
      last = answered;
      return answered;
    },
  };
}
