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

/** Offsets of the decision topic, by partition. */
export type DecisionOffsets = Readonly<Record<string, number>>;

export interface LoggedDecisionsOptions {
  readonly log: Pick<LogReader, 'bounds' | 'read'>;
  readonly linkTopic: string;
  readonly decisionTopic: string;
  readonly schemaOf: SchemaSource;
}

export type LoggedDecisions = ReturnType<typeof createLoggedDecisions>;
export type UnappliedFacts = ReturnType<typeof createUnappliedFacts>;

/** How long end offsets are cached. With older ends, a few more decisions are read after a loss. */
const ENDS_KEPT_MS = 10_000;

async function retryable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new RetryableFault('decisions cannot be read from the log', { cause });
  }
}

/** Logged decisions about facts that the graph has not applied. */
export function createLoggedDecisions(options: LoggedDecisionsOptions) {
  const { log, linkTopic, decisionTopic } = options;
  let known: { atMs: number; ends: DecisionOffsets } | null = null;
  return {
    /** End offsets of the decision topic, at most 10 s old. Later decisions follow them. @throws RetryableFault */
    async ends(): Promise<DecisionOffsets> {
      const nowMs = performance.now();
      if (known !== null && nowMs - known.atMs < ENDS_KEPT_MS) return known.ends;
      const bounds = await retryable(log.bounds(decisionTopic));
      known = { atMs: nowMs, ends: Object.fromEntries(bounds.map(({ partition, end }) => [partition, end])) };
      return known.ends;
    },
    /**
     * The facts of a partition that may have logged decisions, or null.
     * @param after offsets of the decision topic that precede the facts' decisions; null when unknown
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
  /** Facts from this offset on are new. */
  readonly end: number;
}

function createUnappliedFacts(options: LoggedDecisionsOptions, unapplied: Unapplied) {
  const readers = new Map<number, Promise<DecisionReader>>();
  let bounds: readonly LogBounds[] | null = null;
  const readerOf = (environmentId: string, partitions: readonly LogBounds[], applied: number) => {
    const partition = toPartition(Buffer.from(environmentId), partitions.length);
    const known =
      readers.get(partition) ?? DecisionReader.open(options, unapplied, { bounds: partitions[partition]!, applied });
    readers.set(partition, known);
    return known;
  };
  const complete = async (facts: readonly GraphFact[], applied: number) => {
    // Bounds are read once, after the consumer that decided the facts has closed.
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
          // A failed reader cannot continue.
          readers.clear();
          throw fault;
        }),
      ),
  };
}

/**
 * Reads a partition of the decision topic twice: first to count the decided steps of each fact, then with the facts, so
 * that only the decisions of one batch are in memory. Copies of unacknowledged records may follow later decisions.
 */
class DecisionReader {
  readonly #decisions: AsyncGenerator<IdentityDecisionRecord>;
  readonly #decided: DecidedSteps;
  /** Decisions by fact offset, then by step. */
  readonly #found = new Map<number, StepDecision[]>();

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
    if (steps === 0) return offset < (this.#decided.lastOf.get(environmentId) ?? -1) ? 'parked' : null;
    for (const known of this.#found.keys()) if (known <= applied) this.#found.delete(known);
    for (;;) {
      const decisions = this.#found.get(offset);
      if (decisions?.length === steps) return decisions;
      const { done, value } = await this.#decisions.next();
      if (done) throw new Error(`decisions about the fact at offset ${offset} are no longer in the log`);
      if (value.offset > applied) this.#note(value);
    }
  }

  /** Notes a decision. Ignores copies of steps. */
  #note(record: IdentityDecisionRecord): void {
    const steps = this.#found.get(record.offset) ?? [];
    if (record.step !== steps.length) return;
    steps.push(fromDecisionRecord(record));
    this.#found.set(record.offset, steps);
  }
}

interface DecidedSteps {
  /** Number of decided steps of the fact at an offset. */
  stepsOf(offset: number): number;
  readonly lastOf: ReadonlyMap<string, number>;
}

/** Counts the decided steps of each fact from `first` on, one byte per fact. */
async function countSteps(
  decisions: AsyncGenerator<IdentityDecisionRecord>,
  { first, end }: { first: number; end: number },
): Promise<DecidedSteps> {
  const counts = new Uint8Array(end - first);
  const lastOf = new Map<string, number>();
  for await (const { environmentId, offset, step } of decisions) {
    if (counts[offset - first] === step) counts[offset - first] = step + 1;
    lastOf.set(environmentId, Math.max(offset, lastOf.get(environmentId) ?? -1));
  }
  return { stepsOf: (offset) => counts[offset - first] ?? 0, lastOf };
}

type LoggedRecord = { readonly at: number; readonly record: IdentityDecisionRecord };
type Read = (start: number, end?: number) => AsyncGenerator<LoggedRecord>;

/** Reads decisions of one partition up to its current end. */
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

/**
 * Finds the first decision of a generation by bisection, which is possible because linkers are stopped between
 * generations.
 */
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
