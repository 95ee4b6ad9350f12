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
  /** Offset of the last record in the batch. */
  readonly through: number;
  /** Log mark of the batch that contains `through`. */
  readonly mark: LogMark | null;
  /** Receives the results chunk by chunk, in order. */
  readonly onResults: (applied: readonly Applied[]) => void;
}

/** While the graph decides one chunk, the keys of the next chunk are computed. */
const CHUNK_FACTS_MAX = 512;

export type ApplyFacts = ReturnType<typeof createApplyFacts>;

interface OwnedPartition {
  readonly source: LinkSourcePartition;
  readonly signal: AbortSignal;
  /** Last applied offset that this process has observed. */
  applied: number;
  /** Facts that may have logged decisions; null if all facts after `applied` are new. */
  unapplied: UnappliedFacts | null;
}

/** Creates the step that decides facts. The step fails while the graph is unavailable, incomplete, or missing facts. */
export function createApplyFacts(
  graph: IdentityGraph,
  logged: LoggedDecisions,
  toGraphFact: (fact: IdentityLinkRecord, offset: number) => GraphFact,
) {
  const partitions = new Map<string, OwnedPartition>();
  /** Highest applied or committed offset that this process has observed, per partition. */
  const requiredOffsets = new Map<string, number>();
  const nameOf = (source: LinkSourcePartition) => `${source.generation}/${source.partition}`;
  const owned = () => [...partitions.values()].filter(({ signal }) => !signal.aborted);

  return {
    /**
     * Reads a partition's last applied offset and the log mark of its batch. Must be called before the first batch.
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
      if (isOperatorDecision) requiredOffsets.delete(name);
      else requiredOffsets.set(name, Math.max(requiredOffsets.get(name) ?? -1, committed - 1));
      return { applied, mark: parseMark(note?.mark) };
    },
    /** @throws RetryableFault, GraphBehindFault */
    async apply(
      source: LinkSourcePartition,
      facts: readonly PositionedFact[],
      { through, mark, onResults }: ApplyOptions,
    ): Promise<void> {
      const name = nameOf(source);
      const state = partitions.get(name);
      if (state === undefined) throw new Error(`call resume() before applying facts of partition ${source.partition}`);
      // For reread facts, the existing note stays valid: its batch is later, and their decisions follow its offsets.
      if (mark !== null && through > state.applied) {
        const decisions = state.unapplied === null ? await logged.ends() : state.unapplied.after;
        await retryable(graph.note(source, { mark: fromMark(mark), decisions }, through));
      }
      const prepare = (from: number) =>
        facts.slice(from, from + CHUNK_FACTS_MAX).map(({ fact, offset }) => toGraphFact(fact, offset));
      let chunk = prepare(0);
      for (let next = CHUNK_FACTS_MAX; ; next += CHUNK_FACTS_MAX) {
        const end = next < facts.length ? chunk.at(-1)!.offset : through;
        const applying = applyChunk(graph, state, { facts: chunk, end, onResults });
        try {
          chunk = prepare(next);
        } finally {
          // No graph call may still be running when the caller receives the fault.
          await applying;
        }
        requiredOffsets.set(name, Math.max(requiredOffsets.get(name) ?? -1, state.applied));
        if (next >= facts.length) return;
      }
    },
    /** Returns true if the graph has lost facts of an owned partition. @throws a fault of the graph */
    async hasLost(): Promise<boolean> {
      // Compared with the offset before the query, because a batch may be applied during the query.
      const before = owned().map((state) => ({ state, applied: state.applied }));
      const now = await Promise.all(before.map(({ state }) => graph.lastApplied(state.source)));
      return before.some(({ state, applied }, at) => !state.signal.aborted && now[at]! < applied);
    },
    /** Returns the owned partitions whose facts the graph has lost, with the reason. */
    missing: (): ReadonlyMap<number, string> =>
      new Map(owned().flatMap((state) => toReason(state, requiredOffsets.get(nameOf(state.source)) ?? -1))),
  };
}

function toReason({ source, applied }: OwnedPartition, last: number): [partition: number, reason: string][] {
  if (applied >= last) return [];
  return [[source.partition, `Redis has lost the links after offset ${applied} up to ${last}; reapplying them`]];
}

/** Applies facts up to an offset, with their logged decisions if the graph has lost them. */
async function applyChunk(
  graph: IdentityGraph,
  state: OwnedPartition,
  {
    facts,
    end,
    onResults,
  }: { facts: readonly GraphFact[]; end: number; onResults: Parameters<IdentityGraph['apply']>[1] },
): Promise<void> {
  const { source, applied: after, unapplied } = state;
  const completed = unapplied === null ? facts : await unapplied.complete(facts, after);
  await retryable(graph.apply({ ...source, after, through: end, facts: completed }, onResults));
  state.applied = Math.max(after, end);
  if (unapplied !== null && state.applied + 1 >= unapplied.end) state.unapplied = null;
}

async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof GraphBehindFault) throw cause;
    throw new RetryableFault(`identity graph failed: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}
