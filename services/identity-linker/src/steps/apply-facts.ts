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

/** What goes with a batch of facts. */
export interface ApplyOptions {
  /** Last offset that the batch accounts for. */
  readonly through: number;
  /** The batch of the log that holds it. */
  readonly mark: LogMark | null;
  /** Told of every part of the answer as soon as it is decided, in the order of the facts. */
  readonly onPart: (applied: readonly Applied[]) => void;
}

/** Keys of the next facts are made while the graph decides these: some milliseconds of work on either side. */
const CHUNK_FACTS_MAX = 512;

export interface ApplyFacts {
  /**
   * Asks the graph how far it is with a partition, and with which batch of the log; must come before its first block.
   * @throws RetryableFault
   */
  resume(source: LinkSourcePartition): Promise<{ applied: number; mark: LogMark | null }>;
  /** @throws RetryableFault, GraphBehindFault */
  apply(source: LinkSourcePartition, facts: readonly PositionedFact[], options: ApplyOptions): Promise<void>;
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
      const mark = await retryable(graph.readMark(source));
      known.set(nameOf(source), applied);
      return { applied, mark: mark === null ? null : parseMark(JSON.parse(mark)) };
    },
    async apply(source, facts, { through, mark, onPart }) {
      const name = nameOf(source);
      if (!known.has(name)) throw new Error(`partition ${source.partition} was never resumed`);
      // Facts that are read again lie before the batch that is noted: the note stays.
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
          // Nothing of this batch runs any more when its caller hears that it failed.
          await applying;
        }
        known.set(name, Math.max(after, end));
        if (next >= facts.length) return;
      }
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
