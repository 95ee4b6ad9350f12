import { type ChainNode, NodeFault } from '@playline/chain';

/** A chain's id and genesis hash. */
export class ChainIdentity {
  private readonly number: number;
  private first: string | null = null;

  /** @param number the part of the id after `eip155:` */
  constructor(number: number) {
    this.number = number;
  }

  /** The genesis hash, or null until the log or the first checked node provides it. */
  get genesis(): string | null {
    return this.first;
  }

  /** Sets the genesis hash that was read from the log. */
  restore(genesis: string): void {
    this.first = genesis;
  }

  /** Checks a node's chain id and genesis hash. @throws NodeFault `other-chain` */
  async check(node: ChainNode): Promise<void> {
    const reported = await node.chainId();
    if (reported !== this.number)
      throw new NodeFault('other-chain', `the node is on chain ${reported}, not on chain ${this.number}`);
    const first = await node.block(0);
    if (first === null) throw new NodeFault('behind', 'the node does not return the first block');
    this.first ??= first.hash;
    if (first.hash !== this.first)
      throw new NodeFault('other-chain', 'the genesis block differs from the indexed chain');
  }
}
