import type { ChainNode, ChainNodes } from '../ports.ts';

/** Nodes of one chain, the preferred one first: one at a time answers, until somebody has passed it over. */
export function createNodeChoice(nodes: readonly ChainNode[]): ChainNodes {
  let at = 0;
  return {
    count: nodes.length,
    get current() {
      return nodes[at]!;
    },
    passOver: (node) => {
      // Two lanes may find the same fault at a time.
      if (node === nodes[at]) at = (at + 1) % nodes.length;
    },
  };
}
