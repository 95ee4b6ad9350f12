import { type ChainNode, NodeFault } from '@playline/chain';

/** The chain id, and the hash of the first block. */
export class ChainIdentity {
  private readonly number: number;
  private first: string | null = null;

  /** @param number after `eip155:` */
  constructor(number: number) {
    this.number = number;
  }

  /** null until known, from the log or the first checked node. */
  get genesis(): string | null {
    return this.first;
  }

  /** Sets the genesis hash from the log. */
  restore(genesis: string): void {
    this.first = genesis;
  }

  /** Also detects a chain that was recreated with the same id. @throws NodeFault `other-chain` */
  async check(node: ChainNode): Promise<void> {
    const given = await node.chainId();
    if (given !== this.number)
      throw new NodeFault('other-chain', `it is a node of chain ${given}, not of ${this.number}`);
    const first = await node.block(0);
    if (first === null) throw new NodeFault('behind', 'it does not know the first block');
    this.first ??= first.hash;
    if (first.hash !== this.first)
      throw new NodeFault('other-chain', 'its genesis block differs from the indexed chain');
  }
}
