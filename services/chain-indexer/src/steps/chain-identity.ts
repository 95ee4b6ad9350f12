import { type ChainNode, NodeFault } from '@playline/chain';

/** What distinguishes a chain from every other: its id, and the hash of its first block. */
export class ChainIdentity {
  private readonly number: number;
  private first: string | null = null;

  /** @param number the one after `eip155:` */
  constructor(number: number) {
    this.number = number;
  }

  /** Hash of the first block; null until it is known, from the log or from the first node that is checked. */
  get genesis(): string | null {
    return this.first;
  }

  /** Takes the hash of the first block from the log. */
  restore(genesis: string): void {
    this.first = genesis;
  }

  /**
   * Checks that a node serves the chain, and not one that was recreated under the same chain id. When the first block
   * is not known yet, that of this node is taken.
   * @throws NodeFault `other-chain`
   */
  async check(node: ChainNode): Promise<void> {
    const given = await node.chainId();
    if (given !== this.number)
      throw new NodeFault('other-chain', `it is a node of chain ${given}, not of ${this.number}`);
    const first = await node.block(0);
    if (first === null) throw new NodeFault('behind', 'it does not know the first block');
    this.first ??= first.hash;
    if (first.hash !== this.first)
      throw new NodeFault('other-chain', 'its genesis block is not that of the chain that is indexed');
  }
}
