import type { IdentityLinkRecord } from '@playline/contracts';
import {
  type Applied,
  GraphBehindFault,
  type GraphFact,
  type IdentityGraph,
  type LinkSourcePartition,
} from '@playline/people';
import { type AssignedPartition, fromMark, type LogMark, parseMark, RetryableFault } from '@playline/stream';
import type { LoggedDecisions, UnappliedFacts } from './logged-decisions.ts';

export interface PositionedFact {
  readonly offset: number;
  readonly fact: IdentityLinkRecord;
}

export interface ApplyOptions {
  readonly through: number;
  /** Log mark of the batch that contains this offset. */
  readonly mark: LogMark | null;
  /** Called with each part of the results, in order. */
  readonly onPart: (applied: readonly Applied[]) => void;
}

/** The keys of the next chunk are computed while the graph decides the current chunk. */
const CHUNK_FACTS_MAX = 512;

export type ApplyFacts = ReturnType<typeof createApplyFacts>;

interface OwnedPartition {
  readonly source: LinkSourcePartition;
  readonly signal: AbortSignal;
  /** Last applied offset known to this process. */
  applied: number;
  /** Facts that may have logged decisions; null when all facts after `applied` are new. */
  unapplied: UnappliedFacts | null;
}

/** Creates the step that decides facts. It fails while the graph is unavailable, incomplete, or has lost facts. */
export function createApplyFacts(
  graph: IdentityGraph,
  logged: LoggedDecisions,
  toGraphFact: (fact: IdentityLinkRecord, offset: number) => GraphFact,
) {
  const partitions = new Map<string, OwnedPartition>();
  /** Greatest applied or committed offset known to this process. */
  const wanted = new Map<string, number>();
  const nameOf = (source: LinkSourcePartition) => `${source.generation}/${source.partition}`;
  const owned = () => [...partitions.values()].filter(({ signal }) => !signal.aborted);

  return {
    /**
     * Reads the last applied offset of a partition and the mark of its batch. Must be called before the partition's
     * first batch.
     * @throws RetryableFault
     */
    async resume(
      source: LinkSourcePartition,
      { committed, isOperatorDecision, signal }: Pick<AssignedPartition, 'committed' | 'isOperatorDecision' | 'signal'>,
    ): Promise<{ applied: number; mark: LogMark | null }> {
      const name = nameOf(source);
      const applied = await retryable(graph.lastApplied(source));
      const note = await retryable(graph.readNote(source));
      const unapplied = await logged.open(source, applied, note?.decisions ?? null);
      partitions.set(name, { source, signal, applied, unapplied });
      if (isOperatorDecision) wanted.delete(name);
      else wanted.set(name, Math.max(wanted.get(name) ?? -1, committed - 1));
      return { applied, mark: parseMark(note?.mark) };
    },
    /** @throws RetryableFault, GraphBehindFault */
    async apply(
      source: LinkSourcePartition,
      facts: readonly PositionedFact[],
      { through, mark, onPart }: ApplyOptions,
    ): Promise<void> {
      const name = nameOf(source);
      const state = partitions.get(name);
      if (state === undefined) throw new Error(`partition ${source.partition} was not resumed`);
      // Reread facts precede the noted batch, whose note is kept. Their logged decisions follow the noted offsets.
      if (mark !== null && through > state.applied) {
        const decisions = state.unapplied === null ? await logged.ends() : state.unapplied.after;
        await retryable(graph.note(source, { mark: fromMark(mark), decisions }));
      }
      const prepare = (from: number) =>
        facts.slice(from, from + CHUNK_FACTS_MAX).map(({ fact, offset }) => toGraphFact(fact, offset));
      let chunk = prepare(0);
      for (let next = CHUNK_FACTS_MAX; ; next += CHUNK_FACTS_MAX) {
        const end = next < facts.length ? chunk.at(-1)!.offset : through;
        const applying = applyChunk(graph, state, { facts: chunk, end, onPart });
        try {
          chunk = prepare(next);
        } finally {
          // No call of this batch may be running when the caller gets the fault.
          await applying;
        }
        wanted.set(name, Math.max(wanted.get(name) ?? -1, state.applied));
        if (next >= facts.length) return;
      }
    },
    /** Whether the graph has lost facts of an owned partition. @throws a fault of the graph */
    async hasLost(): Promise<boolean> {
      // Compared with the offset before the query, because a batch may be applied in between.
      const before = owned().map((state) => ({ state, applied: state.applied }));
      const now = await Promise.all(before.map(({ state }) => graph.lastApplied(state.source)));
      return before.some(({ state, applied }, at) => !state.signal.aborted && now[at]! < applied);
    },
    /** OwnedPartition partitions with facts that the graph has lost, and the reason. */
    missing: (): ReadonlyMap<number, string> =>
      new Map(owned().flatMap((state) => toReason(state, wanted.get(nameOf(state.source)) ?? -1))),
  };
}

function toReason({ source, applied }: OwnedPartition, last: number): [partition: number, reason: string][] {
  if (applied >= last) return [];
  return [[source.partition, `Redis has lost links after offset ${applied}, up to ${last}; reapplying them`]];
}

/** Applies facts up to an offset, with their logged decisions if the graph has lost them. */
async function applyChunk(
  graph: IdentityGraph,
  state: OwnedPartition,
  { facts, end, onPart }: { facts: readonly GraphFact[]; end: number; onPart: Parameters<IdentityGraph['apply']>[1] },
): Promise<void> {
  const { source, applied: after, unapplied } = state;
  const known = unapplied === null ? facts : await unapplied.complete(facts, after);
  await retryable(graph.apply({ ...source, after, through: end, facts: known }, onPart));
  state.applied = Math.max(after, end);
  if (unapplied !== null && state.applied + 1 >= unapplied.end) state.unapplied = null;
}

async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof GraphBehindFault) throw cause;
    throw new RetryableFault(`the identity graph: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
