import type { IdentityLinkRecord } from '@playline/contracts';
import type { ReadinessChecks } from '@playline/http';
import { type Applied, createGraphFact, GraphBehindFault, type LinkSourcePartition, namedBy } from '@playline/people';
import { type Closable, type Metrics, watchWrites } from '@playline/runtime';
import type { AssignedPartition, BatchHandler, BatchPosition, Consumer } from '@playline/stream';
import { type ApplyFacts, createApplyFacts } from './steps/apply-facts.ts';
import type { LinkerParts } from './steps/decide-facts.ts';
import { createDecideFacts } from './steps/decide-facts.ts';
import { createDecodeBatch, type DecodedBatch, type Found, reportDeadLetters } from './steps/decode-batch.ts';
import { createLoggedDecisions } from './steps/logged-decisions.ts';
import { createParkedFacts, type ParkedFact } from './steps/parked-facts.ts';
import { createParkedTopic, type ParkedTopic, type ParkedTopicFact } from './steps/parked-topic.ts';
import { createPublish } from './steps/publish.ts';
import { isLeftMark } from './steps/waiting-fact.ts';

export interface Linker extends Closable {
  readonly ready: ReadinessChecks;
  /** Why partitions are stopped or wait, by `topic/partition`. */
  blockers(): Readonly<Record<string, string>>;
}

/** A batch is trimmed and committed once. A larger one would take long to repeat after a fault. */
const BATCH_RECORDS_MAX = 4_000;

/**
 * links  -> find start -> decode -> decide and publish -> park what waits for an erasure
 * parked -> decode -> wait until nobody is held -> back to links (`parked-flow.ts`)
 *
 * The offset of a batch is committed after its last step, so a crash repeats a batch and never skips one.
 */
function createBatchHandler(parts: LinkerParts, facts: ApplyFacts): BatchHandler {
  const { generation, logger } = parts;
  const decode = createDecodeBatch(parts.schemaOf, 'link');
  const decide = createDecideFacts(parts, facts);
  const { park, firstWaiting } = createParkFacts(parts, createGraphFact(parts.rules));
  const metrics = createLinkerMetrics(parts.metrics);
  return {
    batchRecordsMax: BATCH_RECORDS_MAX,
    onAssign: (assigned) => findStart(facts, { generation, partition: assigned.partition }, assigned),
    async onBatch(records, position) {
      const batch = await decode(records);
      const applied = await decide(batch, position);
      metrics.batch(applied, batch.deadLetters.length);
      reportDeadLetters(logger, position, batch);
      await park(batch, applied, position);
    },
    unfinishedFrom: firstWaiting,
  };
}

/** Opens the linker: one consumer of links, one of the parked place. */
export async function openLinker(parts: LinkerParts): Promise<Linker> {
  const { people, producer, metrics, logger } = parts;
  watchWrites(metrics, () => people.takesWrites());
  const rewinds = metrics.counter(
    'playline_identity_rewinds_total',
    'Times that the graph had lost facts it had applied',
  );
  const facts = createApplyFacts(people.graph, createLoggedDecisions(parts), createGraphFact(parts.rules));
  const consumer = await openRewindingConsumer(createBatchHandler(parts, facts), {
    open: parts.openConsumer,
    hasLost: facts.hasLost,
    onRewind() {
      rewinds.inc();
      logger.error('the identity graph has lost facts that it had applied: going back to them');
    },
  });
  const parked = createParkedFlow(parts);
  watchWaiting(metrics, parked.count);
  const parkedConsumer = await parts.openParkedConsumer(parked.handler);
  return {
    ready: {
      consumer: () => consumer.ready(),
      parked: () => parkedConsumer.ready(),
      graph: () => people.ready(),
      // Queried here too: after Redis came back, the next check of the consumer may be up to a second away.
      links: async () => facts.missing().size === 0 && !(await facts.hasLost().catch(() => true)),
      broker: () => producer.ready(),
    },
    blockers: () => {
      const missing = [...facts.missing()].map(([partition, reason]) => [`${parts.linkTopic}/${partition}`, reason]);
      return Object.fromEntries([...missing, ...consumer.blockers(), ...parkedConsumer.blockers()]);
    },
    close: async () => void (await Promise.all([consumer.close(), parkedConsumer.close()])),
  };
}

interface LinkerMetrics {
  /** Counts the results of a published batch. Batches that are repeated count again. */
  batch(applied: readonly Applied[], deadLetters: number): void;
}

/** Reports at every scrape the facts that wait in the parked place, in the partitions of this process. */
function watchWaiting(metrics: Metrics, count: () => number): void {
  metrics.collectedGauge('playline_identity_waiting_facts', 'Link facts that wait for an erasure which takes long', {
    collect: (gauge) => gauge.set(count()),
  });
}

function createLinkerMetrics(metrics: Metrics): LinkerMetrics {
  const facts = metrics.counter('playline_identity_facts_total', 'Link facts by what became of them', ['result']);
  const decisions = metrics.counter('playline_identity_decisions_total', 'Decisions about links', [
    'link',
    'outcome',
    'reason',
  ]);
  return {
    batch(applied, deadLetters) {
      if (deadLetters > 0) facts.inc({ result: 'dead_letter' }, deadLetters);
      // Counted here first, because a look-up of labels for every decision costs more than the count.
      const [results, outcomes] = [new Map<string, number>(), new Map<string, number>()];
      for (const one of applied) {
        countOne(results, one.kind);
        if (one.kind !== 'decided') continue;
        for (const { link, outcome, reason } of one.decisions) countOne(outcomes, `${link} ${outcome} ${reason}`);
      }
      for (const [result, count] of results) facts.inc({ result }, count);
      for (const [labels, count] of outcomes) {
        const [link, outcome, reason] = labels.split(' ');
        decisions.inc({ link: link!, outcome: outcome!, reason: reason! }, count);
      }
    },
  };
}

function countOne(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

interface RewindingOptions {
  open(handler: BatchHandler): Promise<Consumer>;
  /** Called when the graph has lost facts, before the consumer is closed. */
  onRewind(): void;
  /** Whether the graph has lost facts. Called every second, because the next batch may be hours away. */
  hasLost(): Promise<boolean>;
}

const CHECK_EVERY_MS = 1_000;

/**
 * Opens a consumer that goes back when the graph has lost applied facts. The only way to move a position back is to
 * close the consumer, open it again and determine the start. It is not ready meanwhile.
 */
async function openRewindingConsumer(
  handler: BatchHandler,
  { open, onRewind, hasLost }: RewindingOptions,
): Promise<Consumer> {
  let closed = false;
  let reopening: Promise<void> | null = null;
  const reopen = async () => {
    onRewind();
    await consumer.close();
    if (!closed) consumer = await open(watched);
  };
  const goBack = () => {
    reopening ??= reopen().finally(() => {
      reopening = null;
    });
  };
  const watched: BatchHandler = {
    ...handler,
    async onBatch(records, position) {
      try {
        await handler.onBatch(records, position);
      } catch (fault) {
        if (fault instanceof GraphBehindFault) goBack();
        throw fault;
      }
    },
  };
  let consumer = await open(watched);
  let timer: NodeJS.Timeout;
  const check = async () => {
    // A graph that does not answer is checked again.
    if (reopening === null && (await hasLost().catch(() => false)) && !closed) goBack();
    if (!closed) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => void check(), CHECK_EVERY_MS);
  };
  schedule();
  return {
    ready: () => reopening === null && consumer.ready(),
    blockers: () => consumer.blockers(),
    lag: () => consumer.lag(),
    async close() {
      closed = true;
      clearTimeout(timer);
      await reopening;
      await consumer.close();
    },
  };
}

/** Faults less than this apart are one outage, which is logged once. */
const OUTAGE_GAP_MS = 60_000;

/** The handler of the parked place, and the number of facts that wait there in the partitions of this process. */
interface ParkedFlow {
  readonly handler: BatchHandler;
  count(): number;
}

/**
 * Builds the flow of facts whose erasure takes long. They wait on a topic of their own, uncommitted, until no hold
 * delays them any more. Then they go back to the link topic.
 */
function createParkedFlow(parts: LinkerParts): ParkedFlow {
  const decode = createDecodeBatch(parts.schemaOf, 'parked');
  const publish = createPublish(parts.producer);
  const toPlaced = createToParkedTopicFact(parts);
  const places = openParkedTopics(parts);
  return {
    handler: {
      async onBatch(records, position) {
        const batch = await decode(records.filter((record) => !isLeftMark(record)));
        await publish(batch.deadLetters);
        reportDeadLetters(parts.logger, position, batch);
        await places.of(position).add(batch.found.map(toPlaced));
      },
      unfinishedFrom: (position) => places.of(position).firstWaiting(),
    },
    count: () => places.all().reduce((sum, place) => sum + place.count(), 0),
  };
}

function openParkedTopics(parts: LinkerParts): ByAssignment<ParkedTopic> {
  const { people, producer, linkTopic, parkedTopicPace: placePace } = parts;
  const publish = createPublish(producer);
  return createByAssignment(({ signal, workEnded, topic, partition }: BatchPosition) => {
    let failedAt = Number.NEGATIVE_INFINITY;
    return createParkedTopic({
      guards: people.guards,
      publish,
      linkTopic,
      signal,
      pace: placePace,
      onLeft: workEnded,
      onFault: (error) => {
        const isNew = performance.now() - failedAt > OUTAGE_GAP_MS;
        failedAt = performance.now();
        if (isNew)
          parts.logger.warn(
            { error, topic, partition },
            'facts that wait for erasures cannot be checked; they are checked again every second',
          );
      },
    });
  });
}

function createToParkedTopicFact({ rules }: LinkerParts): (found: Found) => ParkedTopicFact {
  const toGraphFact = createGraphFact(rules);
  const toKeys = (fact: IdentityLinkRecord, offset: number) =>
    namedBy(toGraphFact(fact, offset)).map((key) => key.toString('hex'));
  return ({ fact, offset, record }) => ({
    record,
    environmentId: fact.environmentId,
    receivedAt: fact.receivedAt,
    messageId: fact.messageId.toString('hex'),
    keys: [...new Set(toKeys(fact, offset))],
  });
}

/** Graph and log contradict each other. Going on would skip facts, or give new facts the decisions of old ones. */
class LogAndGraphDiffer extends Error {
  override readonly name = 'LogAndGraphDiffer';
}

/**
 * Finds the offset to read the facts of a partition from.
 * - Redis may have lost its last second, and so have applied less than is committed. The facts that it lacks are read
 *   again.
 * - Redis may have applied more than is committed. Those facts are read again too, and the recorded decisions are
 *   published.
 * - It throws when the log has lost facts that the graph has applied, or no longer has facts that the graph lacks.
 * @throws LogAndGraphDiffer, RetryableFault
 */
async function findStart(
  facts: Pick<ApplyFacts, 'resume'>,
  source: LinkSourcePartition,
  assigned: AssignedPartition,
): Promise<number> {
  const { topic, partition, committed, logStart, isOperatorDecision: isDecision, hasBatch } = assigned;
  const { applied, mark } = await facts.resume(source, assigned);
  if (mark !== null && (await hasBatch(mark)) === false)
    throw new LogAndGraphDiffer(
      `${topic}/${partition}: the log has lost facts that the identity graph has applied (up to ${applied}), so others may ` +
        `stand at their offsets. Set LINK_TOPIC_GENERATION to ${source.generation + 1} in every linker and start them again`,
    );
  // Earlier facts were skipped by an operator's decision, or decided under another generation.
  if (isDecision) return committed;
  const next = applied + 1;
  // A new generation has applied nothing, so everything that the log still has is decided again.
  const lacks = applied >= 0 && next < Math.min(logStart, committed);
  if (lacks)
    throw new LogAndGraphDiffer(
      `${topic}/${partition}: the identity graph has applied facts up to ${applied}, and the log begins at ${logStart}: what ` +
        'lies between is in neither. The graph is older than the log keeps facts: empty that Redis, then npm run rebuild',
    );
  return Math.min(committed, Math.max(next, logStart));
}

/** Takes the facts that wait for an erasure. */
interface ParkFacts {
  /**
   * Parks the facts of a batch that wait. Resolves when every running round has ended: the batch may contain copies
   * from such a round, and its commit passes the originals.
   */
  park(batch: DecodedBatch, applied: readonly Applied[], position: BatchPosition): Promise<void>;
  /** Lowest offset of a waiting fact, which must not be committed; null when none waits. */
  firstWaiting(position: BatchPosition): number | null;
}

type ToGraphFact = ReturnType<typeof createGraphFact>;

/** Creates the step that parks facts, separately for each assignment of a partition. */
function createParkFacts(parts: LinkerParts, toGraphFact: ToGraphFact): ParkFacts {
  const { parkedTopic, parkedPace: pace } = parts;
  const publish = createPublish(parts.producer);
  const parked = createByAssignment(({ signal, workEnded: onLeft }: BatchPosition) =>
    createParkedFacts({ publish, parkedTopic, signal, onLeft, pace }),
  );
  return {
    async park({ found }, applied, position) {
      const own = parked.of(position);
      own.add(toParked(found, applied, toGraphFact));
      await own.settled();
    },
    firstWaiting: (position) => parked.of(position).firstWaiting(),
  };
}

function toParked(found: DecodedBatch['found'], applied: readonly Applied[], toGraphFact: ToGraphFact): ParkedFact[] {
  return applied.flatMap((one, at) => {
    if (one.kind !== 'parked') return [];
    const { fact, record, offset } = found[at]!;
    const person = `${fact.environmentId} ${one.person.toString('hex')}`;
    return [{ person, record, keys: namedBy(toGraphFact(fact, offset)) }];
  });
}

/** Keeps a value for each assignment of a partition. A partition that is assigned again gets a new one. */
interface ByAssignment<T> {
  of(position: BatchPosition): T;
  /** Values of the partitions that this process owns. */
  all(): readonly T[];
}

/** Creates the store of values. The key is the signal, because each assignment has its own. */
function createByAssignment<T>(open: (position: BatchPosition) => T): ByAssignment<T> {
  const assignments = new Map<AbortSignal, T>();
  return {
    of(position) {
      const { signal } = position;
      const known = assignments.get(signal) ?? open(position);
      if (!signal.aborted && !assignments.has(signal)) {
        assignments.set(signal, known);
        signal.addEventListener('abort', () => assignments.delete(signal), { once: true });
      }
      return known;
    },
    all: () => [...assignments.values()],
  };
}
