import type { IdentityLinkRecord } from '@playline/contracts';
import {
  type Applied,
  GraphBehindFault,
  type GraphFact,
  type IdentityGraph,
  type LinkSourcePartition,
} from '@playline/people';
import { fromMark, type LogMark, parseMark, RetryableFault } from '@playline/stream';

export interface PositionedFact {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
}

/** Options for a batch of facts. */
export interface ApplyOptions {
  /** Last offset of the batch. */
  readonly through: number;
  /** Mark of the log's batch that contains it. */
  readonly mark: LogMark | null;
  /** Called with every part of the answer as soon as it is decided, in the order of the facts. */
  readonly onPart: (applied: readonly Applied[]) => void;
}

/** The keys of the next chunk are computed while the graph decides this one: some milliseconds of work each. */
const CHUNK_FACTS_MAX = 512;

export interface ApplyFacts {
  /**
   * Reads the last offset of a partition that the graph has applied, and the mark of its batch in the log. Must be
   * called before the first batch of the partition.
   * @throws RetryableFault
   */
  resume(source: LinkSourcePartition): Promise<{ applied: number; mark: LogMark | null }>;
  /** @throws RetryableFault, GraphBehindFault */
  apply(source: LinkSourcePartition, facts: readonly PositionedFact[], options: ApplyOptions): Promise<void>;
}

/**
 * Creates the step that decides facts. It fails, and the facts wait, while the graph is away, has no epoch, or has
 * applied less than it reported before. No fault skips a fact.
 */
export function createApplyFacts(
  graph: IdentityGraph,
  toGraphFact: (fact: IdentityLinkRecord, offset: number) => GraphFact,
): ApplyFacts {
  /** Last applied offset that the graph has reported to this process, by partition. */
  const known = new Map<string, number>();
  const nameOf = (source: LinkSourcePartition) => `${source.generation}/${source.partition}`;

  return {
    async resume(source) {
      const applied = await retryable(graph.lastApplied(source));
      const mark = await retryable(graph.readMark(source));
      known.set(nameOf(source), applied);
      return { applied, mark: mark === null ? null : parseMark(JSON.parse(mark)) };
    },
    async apply(source, facts, { through, mark, onPart }) {
      const name = nameOf(source);
      if (!known.has(name)) throw new Error(`partition ${source.partition} was never resumed`);
      // Facts that are read again come before the noted batch, so the note stays.
      if (mark !== null && through > known.get(name)!)
        await retryable(graph.noteMark(source, JSON.stringify(fromMark(mark))));
      const prepare = (from: number) =>
        facts.slice(from, from + CHUNK_FACTS_MAX).map(({ fact, offset }) => toGraphFact(fact, offset));
      let chunk = prepare(0);
      for (let next = CHUNK_FACTS_MAX; ; next += CHUNK_FACTS_MAX) {
        const after = known.get(name)!;
        const end = next < facts.length ? chunk.at(-1)!.offset : through;
        const applying = retryable(graph.apply({ ...source, after, through: end, facts: chunk }, onPart));
        try {
          chunk = prepare(next);
        } finally {
          // When the caller gets the fault, nothing of this batch may be running.
          await applying;
        }
        known.set(name, Math.max(after, end));
        if (next >= facts.length) return;
      }
    },
  };
}

/** Turns every fault of the graph into a retryable one, because a fact that is given up is a lost link. */
async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof GraphBehindFault) throw cause;
    throw new RetryableFault(`the identity graph: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
