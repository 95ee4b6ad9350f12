import type { IdentityLinkRecord } from '@playline/contracts';
import {
  type Applied,
  GraphBehindFault,
  type GraphFact,
  type IdentityGraph,
  type LinkSourcePartition,
} from '@playline/identity';
import { RetryableFault } from '@playline/stream';

export interface PositionedFact {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
}

export interface ApplyFacts {
  /** Asks the graph how far it is with a partition; must come before its first block. @throws RetryableFault */
  resume(source: LinkSourcePartition): Promise<number>;
  /** @throws RetryableFault, GraphBehindFault */
  apply(source: LinkSourcePartition, facts: readonly PositionedFact[], through: number): Promise<Applied[]>;
}

/**
 * Creates the step that decides facts. Facts wait while the graph is away, has no epoch, or knows less than it has
 * told us before: each is a fault, and none of them skips a fact.
 */
export function createApplyFacts(
  graph: IdentityGraph,
  toGraphFact: (fact: IdentityLinkRecord, offset: number) => GraphFact,
): ApplyFacts {
  /** Offset up to which the graph has told this process that it has applied, by partition. */
  const known = new Map<string, number>();
  const nameOf = (source: LinkSourcePartition) => `${source.generation}/${source.partition}`;

  return {
    async resume(source) {
      const applied = await retryable(graph.lastApplied(source));
      known.set(nameOf(source), applied);
      return applied;
    },
    async apply(source, facts, through) {
      const after = known.get(nameOf(source));
      if (after === undefined) throw new Error(`partition ${source.partition} was never resumed`);
      const graphFacts = facts.map(({ fact, offset }) => toGraphFact(fact, offset));
      const applied = await retryable(graph.apply({ ...source, after, through, facts: graphFacts }));
      known.set(nameOf(source), Math.max(after, through));
      return applied;
    },
  };
}

/** Whatever ails the graph, the facts wait for it: giving one up would lose a link. */
async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof GraphBehindFault) throw cause;
    throw new RetryableFault(`the identity graph: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
