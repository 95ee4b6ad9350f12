import type { IdentityGraph, LinkSourcePartition } from '@playline/identity';
import { RetryableFault } from '@playline/stream';
import type { PositionedFact } from './apply-facts.ts';

export interface TrimOutbox {
  /** Remembers whose decisions were published, for a later trim. */
  note(source: LinkSourcePartition, facts: readonly PositionedFact[]): void;
  /** Trims what was noted; `through` must be committed. @throws RetryableFault */
  trim(source: LinkSourcePartition, through: number): Promise<void>;
}

/** Creates the step that lets the graph forget recorded decisions which nobody will ask for again. */
export function createTrimOutbox(graph: IdentityGraph): TrimOutbox {
  const noted = new Map<string, Set<string>>();
  const environmentsOf = ({ generation, partition }: LinkSourcePartition) => {
    const name = `${generation}/${partition}`;
    const environments = noted.get(name) ?? new Set();
    noted.set(name, environments);
    return environments;
  };
  return {
    note(source, facts) {
      for (const { fact } of facts) environmentsOf(source).add(fact.environmentId);
    },
    async trim(source, through) {
      const environments = environmentsOf(source);
      if (environments.size === 0) return;
      try {
        await graph.trim(source, through, environments);
      } catch (cause) {
        throw new RetryableFault('the outbox could not be trimmed', { cause });
      }
      environments.clear();
    },
  };
}
