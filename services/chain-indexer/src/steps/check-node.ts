import { type ChainNode, NodeFault } from '@playline/chain';

/** What distinguishes a chain from every other. */
export interface ChainIdentity {
  /** The number after `eip155:`. */
  readonly number: number;
  /** Hash of its first block; null when it is not known yet. */
  readonly genesis: string | null;
}

/**
 * Checks that a node serves the chain, and not one that was recreated under the same chain id.
 * @returns the hash of its first block
 * @throws NodeFault `other-chain`
 */
export async function checkNode(node: ChainNode, { number, genesis }: ChainIdentity): Promise<string> {
  const given = await node.chainId();
  if (given !== number) throw new NodeFault('other-chain', `it is a node of chain ${given}, not of ${number}`);
  const first = await node.block(0);
  if (first === null) throw new NodeFault('behind', 'it does not know the first block');
  if (genesis !== null && first.hash !== genesis)
    throw new NodeFault('other-chain', 'its genesis block is not that of the chain that is indexed');
  return first.hash;
}
