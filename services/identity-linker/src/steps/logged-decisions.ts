import {
  createRecordReader,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  type SchemaSource,
} from '@playline/contracts';
import {
  fromDecisionRecord,
  type GraphFact,
  type LinkSourcePartition,
  type LoggedFact,
  type StepDecision,
} from '@playline/people';
import { type LogBounds, type LogReader, RetryableFault, toPartition } from '@playline/stream';

/** Offsets in the decision topic, by partition. */
export type DecisionOffsets = Readonly<Record<string, number>>;

export interface LoggedDecisionsOptions {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  readonly linkTopic: string;
  readonly decisionTopic: string;
  readonly schemaOf: SchemaSource;
}

export type LoggedDecisions = ReturnType<typeof createLoggedDecisions>;
export type UnappliedFacts = ReturnType<typeof createUnappliedFacts>;

/** How long end offsets are cached. Older end offsets cost only a few extra reads after a loss. */
const ENDS_MAX_AGE_MS = 10_000;

async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new RetryableFault('decisions could not be read from the log', { cause });
  }
}

/** Reads the logged decisions about facts that the graph has not applied. */
export function createLoggedDecisions(options: LoggedDecisionsOptions) {
  const { log, linkTopic, decisionTopic } = options;
  let cached: { atMs: number; ends: DecisionOffsets } | null = null;
  return {
    /** Returns the decision topic's end offsets, at most 10 s old. @throws RetryableFault */
    async ends(): Promise<DecisionOffsets> {
      const nowMs = performance.now();
      if (cached !== null && nowMs - cached.atMs < ENDS_MAX_AGE_MS) return cached.ends;
      const bounds = await retryable(log.bounds(decisionTopic));
      cached = { atMs: nowMs, ends: Object.fromEntries(bounds.map(({ partition, end }) => [partition, end])) };
      return cached.ends;
    },
    /**
     * Returns a partition's facts that may have logged decisions, or null.
     * @param after decision offsets before the decisions about these facts; null if unknown
     * @throws RetryableFault
     */
    async open(
      source: LinkSourcePartition,
      applied: number,
      after: DecisionOffsets | null,
    ): Promise<UnappliedFacts | null> {
      const links = await retryable(log.bounds(linkTopic));
      const end = links.find(({ partition }) => partition === source.partition)?.end ?? 0;
      if (end <= applied + 1) return null;
      return createUnappliedFacts(options, { source, after, end });
    },
  };
}

interface Unapplied {
  readonly source: LinkSourcePartition;
  readonly after: DecisionOffsets | null;
  /** Facts at this offset or later are new. */
  readonly end: number;
}

function createUnappliedFacts(options: LoggedDecisionsOptions, unapplied: Unapplied) {
  const readers = new Map<number, Promise<DecisionReader>>();
  let bounds: readonly LogBounds[] | null = null;
  const readerOf = (environmentId: string, partitions: readonly LogBounds[], applied: number) => {
    const partition = toPartition(Buffer.from(environmentId), partitions.length);
    const reader =
      readers.get(partition) ?? DecisionReader.open(options, unapplied, { bounds: partitions[partition]!, applied });
    readers.set(partition, reader);
    return reader;
  };
  const complete = async (facts: readonly GraphFact[], applied: number) => {
    // Read once, because the consumer that decided these facts is closed and adds no decisions.
    bounds ??= await options.log.bounds(options.decisionTopic);
    const completed: LoggedFact[] = [];
    for (const fact of facts) {
      if (fact.offset <= applied || fact.offset >= unapplied.end || bounds.length === 0) completed.push(fact);
      else {
        const logged = await (await readerOf(fact.environmentId, bounds, applied)).of(fact, applied);
        completed.push(logged === null ? fact : { ...fact, logged });
      }
    }
    return completed;
  };
  return {
    end: unapplied.end,
    after: unapplied.after,
    /** Adds logged decisions to facts. @param applied last applied offset. @throws RetryableFault */
    complete: (facts: readonly GraphFact[], applied: number): Promise<LoggedFact[]> =>
      retryable(
        complete(facts, applied).catch((fault) => {
          // A reader cannot continue after a fault.
          readers.clear();
          throw fault;
        }),
      ),
  };
}

/**
 * Reads one partition of the decision topic twice. The first pass counts the decided steps per fact. The second pass
 * returns decisions as facts are completed, so memory contains only one batch of decisions. Duplicates of
 * unacknowledged records may follow later decisions.
 */
class DecisionReader {
  readonly #decisions: AsyncGenerator<IdentityDecisionRecord>;
  readonly #decided: DecidedSteps;
  /** Decisions by fact offset, then by step. */
  readonly #steps = new Map<number, StepDecision[]>();

  private constructor(decisions: AsyncGenerator<IdentityDecisionRecord>, decided: DecidedSteps) {
    this.#decisions = decisions;
    this.#decided = decided;
  }

  static async open(
    options: LoggedDecisionsOptions,
    { source, after, end }: Unapplied,
    { bounds, applied }: { bounds: LogBounds; applied: number },
  ): Promise<DecisionReader> {
    const read = createRead(options, bounds);
    const start = Math.max(bounds.start, after?.[bounds.partition] ?? (await findGeneration(read, source, bounds)));
    const readPartition = () => readUnapplied(read(start), source, applied);
    return new DecisionReader(readPartition(), await countSteps(readPartition(), { first: applied + 1, end }));
  }

  async of({ environmentId, offset }: GraphFact, applied: number): Promise<LoggedFact['logged'] | null> {
    const steps = this.#decided.stepsOf(offset);
    if (steps === 0) return offset < (this.#decided.lastOffsets.get(environmentId) ?? -1) ? 'parked' : null;
    for (const key of this.#steps.keys()) if (key <= applied) this.#steps.delete(key);
    for (;;) {
      const decisions = this.#steps.get(offset);
      if (decisions?.length === steps) return decisions;
      const { done, value } = await this.#decisions.next();
      if (done) throw new Error(`decision topic no longer contains the decisions about offset ${offset}`);
      if (value.offset > applied) this.#addDecision(value);
    }
  }

  /** Stores a decision. Ignores duplicates of a step. */
  #addDecision(record: IdentityDecisionRecord): void {
    const steps = this.#steps.get(record.offset) ?? [];
    if (record.step !== steps.length) return;
    steps.push(fromDecisionRecord(record));
    this.#steps.set(record.offset, steps);
  }
}

interface DecidedSteps {
  /** Returns how many steps of the fact at this offset are decided. */
  stepsOf(offset: number): number;
  readonly lastOffsets: ReadonlyMap<string, number>;
}

/** Counts the decided steps of each fact at or after `first`, in one byte per fact. */
async function countSteps(
  decisions: AsyncGenerator<IdentityDecisionRecord>,
  { first, end }: { first: number; end: number },
): Promise<DecidedSteps> {
  const counts = new Uint8Array(end - first);
  const lastOffsets = new Map<string, number>();
  for await (const { environmentId, offset, step } of decisions) {
    if (counts[offset - first] === step) counts[offset - first] = step + 1;
    lastOffsets.set(environmentId, Math.max(offset, lastOffsets.get(environmentId) ?? -1));
  }
  return { stepsOf: (offset) => counts[offset - first] ?? 0, lastOffsets };
}

type LoggedRecord = { readonly at: number; readonly record: IdentityDecisionRecord };
type Read = (start: number, end?: number) => AsyncGenerator<LoggedRecord>;

/** Reads the decisions in one partition up to its current end. */
function createRead(
  { log, decisionTopic, schemaOf }: LoggedDecisionsOptions,
  { partition, end: last }: LogBounds,
): Read {
  const readValue = createRecordReader({ schemaOf, createReader: identityDecisionCodec.decoderOf });
  return async function* (start, end = last) {
    for await (const { offset, value } of log.read({ topic: decisionTopic, partition, start, end, isWhole: true })) {
      const read = await readValue(value);
      if (read.kind === 'record') yield { at: offset, record: read.record };
    }
  };
}

async function* readUnapplied(decisions: AsyncGenerator<LoggedRecord>, source: LinkSourcePartition, applied: number) {
  for await (const { record } of decisions)
    if (record.generation === source.generation && record.partition === source.partition && record.offset > applied)
      yield record;
}

/** Finds a generation's first decision by binary search. Generations never overlap: all linkers stop in between. */
async function findGeneration(
  read: Read,
  { generation }: LinkSourcePartition,
  { start, end }: LogBounds,
): Promise<number> {
  let [low, high] = [start, generation === 0 ? start : end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { value } = await read(middle, high).next();
    if (value !== undefined && value.record.generation < generation) low = value.at + 1;
    else high = middle;
  }
  return low;
}
