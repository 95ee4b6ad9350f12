import type { ChainNode, ChainNodes } from '../ports.ts';

/** Nodes of one chain, the preferred one first. One node at a time is used, until a caller passes it over. */
export function createNodeChoice(nodes: readonly ChainNode[]): ChainNodes {
  let at = 0;
  return {
    count: nodes.length,
    get current() {
      return nodes[at]!;
    },
    passOver: (node) => {
      // Two lanes may report the same fault: only the first report switches nodes.
      if (node === nodes[at]) at = (at + 1) % nodes.length;
    },
  };
}
