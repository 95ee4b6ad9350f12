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
  resume(
    source: LinkSourcePartition,
    assigned: Pick<AssignedPartition, 'committed' | 'isOperatorDecision' | 'signal'>,
  ): Promise<{ applied: number; mark: LogMark | null }>;
  /** @throws RetryableFault, GraphBehindFault */
  apply(source: LinkSourcePartition, facts: readonly PositionedFact[], options: ApplyOptions): Promise<void>;
  /** Whether the graph now knows less of an owned partition than this process saw applied. @throws fault of the graph */
  hasLost(): Promise<boolean>;
  /** Owned partitions whose applied or committed facts are not all in the graph, and why. */
  missing(): ReadonlyMap<number, string>;
}

/** An assigned partition. */
interface Owned {
  readonly source: LinkSourcePartition;
  readonly signal: AbortSignal;
  /** Last applied offset that the graph has reported to this process. */
  applied: number;
  /** The facts that may be decided on the log; null when all facts after `applied` are new. */
  unapplied: UnappliedFacts | null;
}

/**
 * Creates the step that decides facts. It fails, and the facts wait, while the graph is away, has no epoch, or has
 * applied less than it reported before. No fault skips a fact.
 */
export function createApplyFacts(
  graph: IdentityGraph,
  logged: LoggedDecisions,
  toGraphFact: (fact: IdentityLinkRecord, offset: number) => GraphFact,
): ApplyFacts {
  const partitions = new Map<string, Owned>();
  /** Greatest offset that was applied or committed, as far as this process knows. */
  const wanted = new Map<string, number>();
  const nameOf = (source: LinkSourcePartition) => `${source.generation}/${source.partition}`;
  const owned = () => [...partitions.values()].filter(({ signal }) => !signal.aborted);

  return {
    async resume(source, { committed, isOperatorDecision: isDecision, signal }) {
      const name = nameOf(source);
      const applied = await retryable(graph.lastApplied(source));
      const note = await retryable(graph.readNote(source));
      const unapplied = await logged.open(source, applied, note?.decisions ?? null);
      partitions.set(name, { source, signal, applied, unapplied });
      if (isDecision) wanted.delete(name);
      else wanted.set(name, Math.max(wanted.get(name) ?? -1, committed - 1));
      return { applied, mark: parseMark(note?.mark) };
    },
    async apply(source, facts, { through, mark, onPart }) {
      const name = nameOf(source);
      const state = partitions.get(name);
      if (state === undefined) throw new Error(`partition ${source.partition} was never resumed`);
      // Facts that are read again come before the noted batch, so the note stays. While facts may be decided on the log,
      // their decisions stay after the noted offsets.
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
          // When the caller gets the fault, nothing of this batch may be running.
          await applying;
        }
        wanted.set(name, Math.max(wanted.get(name) ?? -1, state.applied));
        if (next >= facts.length) return;
      }
    },
    async hasLost() {
      // A batch may be applied meanwhile, so the offset that must be there is the one before the query.
      const before = owned().map((state) => ({ state, applied: state.applied }));
      const now = await Promise.all(before.map(({ state }) => graph.lastApplied(state.source)));
      return before.some(({ state, applied }, at) => !state.signal.aborted && now[at]! < applied);
    },
    missing: () => new Map(owned().flatMap((state) => toReason(state, wanted.get(nameOf(state.source)) ?? -1))),
  };
}

function toReason({ source, applied }: Owned, last: number): [partition: number, reason: string][] {
  if (applied >= last) return [];
  return [[source.partition, `Redis has lost links: those after offset ${applied}, up to ${last}, are applied again`]];
}

/** Applies facts up to an offset, with the decisions that the log has about them when the graph has lost these. */
async function applyChunk(
  graph: IdentityGraph,
  state: Owned,
  { facts, end, onPart }: { facts: readonly GraphFact[]; end: number; onPart: Parameters<IdentityGraph['apply']>[1] },
): Promise<void> {
  const { source, applied: after, unapplied } = state;
  const known = unapplied === null ? facts : await unapplied.complete(facts, after);
  await retryable(graph.apply({ ...source, after, through: end, facts: known }, onPart));
  state.applied = Math.max(after, end);
  if (unapplied !== null && state.applied + 1 >= unapplied.end) state.unapplied = null;
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
