import { type BlockName, NodeFault } from '@playline/chain';
import type { AskNode } from './json-rpc.ts';
import { block, hex, parseAnswer } from './node-shapes.ts';

/** The hash of the block with this number, on the branch that ends with the given block. @throws NodeFault */
export type FindAncestor = (end: BlockName, number: number) => Promise<string>;

const BLOCK_BY_HASH = 'eth_getBlockByHash';
const linked = block.extend({ parentHash: hex });

/** Most blocks between two that are compared: their hashes take some megabytes. */
const DISTANCE_MAX = 20_000;
/** Requests of one search. The next search goes on where this one ended. */
const ASKED_MAX = 500;

/**
 * Finds blocks of one branch without a batch. The hash of a block determines its parent, so it does not matter which of
 * several nodes behind one address answers. Links never change, so each is read once.
 */
export function createFindAncestor(ask: AskNode): FindAncestor {
  const parents = new Map<string, string>();
  const readParent = async ({ number, hash }: BlockName): Promise<string> => {
    const found = parseAnswer(linked.nullable(), BLOCK_BY_HASH, await ask(BLOCK_BY_HASH, [hash, false]));
    if (found === null) throw new NodeFault('behind', `the node of the chain does not have the same block ${number}`);
    if (found.hash !== hash || found.number !== number)
      throw new NodeFault('inconsistent', `the node of the chain answered with another block than ${number}`);
    const [oldest] = parents.keys();
    if (parents.size >= 2 * DISTANCE_MAX && oldest !== undefined) parents.delete(oldest);
    parents.set(hash, found.parentHash);
    return found.parentHash;
  };
  return async (end, wanted) => {
    const words = `the node takes no batches, and ${end.number - wanted} blocks are to be read one by one`;
    if (end.number - wanted > DISTANCE_MAX) throw new NodeFault('too-much', `${words}: too many`);
    let { hash } = end;
    let asked = 0;
    for (let { number } = end; number > wanted; number--) {
      const known = parents.get(hash);
      if (known === undefined && ++asked > ASKED_MAX) throw new NodeFault('behind', `${words}: not yet done`);
      hash = known ?? (await readParent({ number, hash }));
    }
    return hash;
  };
}
