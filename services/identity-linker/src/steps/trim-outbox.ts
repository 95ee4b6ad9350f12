import type { IdentityGraph, LinkSourcePartition } from '@playline/people';
import { RetryableFault } from '@playline/stream';
import type { PositionedFact } from './apply-facts.ts';

export interface TrimOutbox {
  /** Notes facts with published decisions, for a later trim. */
  note(source: LinkSourcePartition, facts: readonly PositionedFact[]): void;
  /** Trims the noted facts up to `through`, which must be committed. @throws RetryableFault */
  trim(source: LinkSourcePartition, through: number): Promise<void>;
}

/** Offsets of an environment's facts whose decisions may still be in the outbox. */
interface Offsets {
  first: number;
  last: number;
}

/** Creates the step that deletes decisions from the outbox which are published and committed. */
export function createTrimOutbox(graph: IdentityGraph): TrimOutbox {
  const noted = new Map<string, Map<string, Offsets>>();
  const environmentsOf = ({ generation, partition }: LinkSourcePartition) => {
    const name = `${generation}/${partition}`;
    const environments = noted.get(name) ?? new Map<string, Offsets>();
    noted.set(name, environments);
    return environments;
  };
  return {
    note(source, facts) {
      const environments = environmentsOf(source);
      for (const { fact, offset } of facts) {
        const offsets = environments.get(fact.environmentId);
        if (offsets === undefined) environments.set(fact.environmentId, { first: offset, last: offset });
        else offsets.last = Math.max(offsets.last, offset);
      }
    },
    async trim(source, through) {
      const environments = environmentsOf(source);
      const wanted = [...environments].filter(([, { first }]) => first <= through);
      if (wanted.length === 0) return;
      try {
        await graph.trim(
          source,
          through,
          wanted.map(([environmentId]) => environmentId),
        );
      } catch (cause) {
        throw new RetryableFault('the outbox could not be trimmed', { cause });
      }
      for (const [environmentId, offsets] of wanted) {
        if (offsets.last <= through) environments.delete(environmentId);
        else offsets.first = through + 1;
      }
    },
  };
}
