import { type ChainNode, type IndexedChain, NodeFault } from '@playline/chain';

/** The end of the chain, as one node reports it. */
export interface EndOfNode {
  readonly name: string;
  /** Its latest block. */
  readonly head: number | null;
  /** The last final block; null while nothing is final. */
  readonly horizon: number | null;
  /** Why the node cannot be used; null when it can. Never contains its address. */
  readonly fault: string | null;
}

/** The end of the chain, as all its nodes report it. */
export interface EndsOfChain {
  readonly nodes: readonly EndOfNode[];
  /** The answering node with the highest block; null when none answers. */
  readonly furthest: EndOfNode | null;
}

async function askEnd(node: ChainNode, { chainId, finality }: IndexedChain): Promise<EndOfNode> {
  const { name } = node;
  try {
    const given = await node.chainId();
    if (given !== chainId) throw new NodeFault('other-chain', `it is a node of chain ${given}, not of ${chainId}`);
    const head = (await node.block('latest'))?.number ?? null;
    const said = finality === 'finalized' ? ((await node.block('finalized'))?.number ?? null) : null;
    const horizon = finality === 'finalized' || head === null ? said : Math.max(0, head - finality);
    return { name, head, horizon, fault: null };
  } catch (fault) {
    if (!(fault instanceof NodeFault)) throw fault;
    return { name, head: null, horizon: null, fault: fault.message };
  }
}

/** Asks all nodes of a chain at once. One that does not answer is reported, and does not affect the others. */
export async function askEnds(nodes: readonly ChainNode[], chain: IndexedChain): Promise<EndsOfChain> {
  const ends = await Promise.all(nodes.map((node) => askEnd(node, chain)));
  const answering = ends.filter(({ fault }) => fault === null);
  const furthest = answering.toSorted((one, other) => (other.head ?? -1) - (one.head ?? -1))[0] ?? null;
  return { nodes: ends, furthest };
}
