import type { IdentityLinkRecord } from '@playline/contracts';
import type { ReadinessChecks } from '@playline/http';
import { type Applied, createGraphFact, GraphBehindFault, type LinkSourcePartition, namedBy } from '@playline/people';
import { type Metrics, watchWrites } from '@playline/runtime';
import type { AssignedPartition, BatchHandler, BatchPosition, Consumer } from '@playline/stream';
import { type ApplyFacts, createApplyFacts } from './steps/apply-facts.ts';
import type { LinkerParts } from './steps/decide-facts.ts';
import { createDecideFacts } from './steps/decide-facts.ts';
import { createDecodeBatch, type DecodedBatch, type DecodedFact, reportDeadLetters } from './steps/decode-batch.ts';
import { createLoggedDecisions } from './steps/logged-decisions.ts';
import { type ParkedFact, ParkedFacts } from './steps/parked-facts.ts';
import { ParkedTopic, type ParkedTopicFact } from './steps/parked-topic.ts';
import { createPublish } from './steps/publish.ts';
import { isDepartureRecord } from './steps/waiting-fact.ts';

/** Limits how much work is repeated after a fault. */
const BATCH_RECORDS_MAX = 4_000;

/**
 * links  -> find the start offset -> decode -> decide and publish -> park facts that wait for an erasure
 * parked -> decode -> wait until the holds are released -> republish to the link topic
 *
 * A batch is committed after its last step, so a crash repeats the whole batch.
 */
function createBatchHandler(parts: LinkerParts, facts: ApplyFacts): BatchHandler {
  const { generation, logger } = parts;
  const decode = createDecodeBatch(parts.schemaOf, 'link');
  const decide = createDecideFacts(parts, facts);
  const { park, firstWaiting } = createParkFacts(parts, createGraphFact(parts.rules));
  const countBatch = createLinkerMetrics(parts.metrics);
  return {
    batchRecordsMax: BATCH_RECORDS_MAX,
    onAssign: (assigned) => findStart(facts, { generation, partition: assigned.partition }, assigned),
    async onBatch(records, position) {
      const batch = await decode(records);
      const applied = await decide(batch, position);
      countBatch(applied, batch.deadLetters.length);
      reportDeadLetters(logger, position, batch);
      await park(batch, applied, position);
    },
    unfinishedFrom: firstWaiting,
  };
}

export async function openLinker(parts: LinkerParts) {
  const { people, producer, metrics, logger } = parts;
  watchWrites(metrics, () => people.takesWrites());
  const rewinds = metrics.counter('playline_identity_rewinds_total', 'Rewinds after the graph lost applied facts');
  const facts = createApplyFacts(people.graph, createLoggedDecisions(parts), createGraphFact(parts.rules));
  const consumer = await openRewindingConsumer(createBatchHandler(parts, facts), {
    open: parts.openConsumer,
    hasLost: facts.hasLost,
    onRewind() {
      rewinds.inc();
      logger.error('identity graph lost applied facts; rewinding');
    },
  });
  const parked = createParkedFlow(parts);
  metrics.collectedGauge('playline_identity_waiting_facts', 'Link facts waiting for a long erasure', {
    collect: (gauge) => gauge.set(parked.count()),
  });
  const parkedConsumer = await parts.openParkedConsumer(parked.handler);
  return {
    ready: {
      consumer: () => consumer.ready(),
      parked: () => parkedConsumer.ready(),
      graph: () => people.ready(),
      // Checked here as well, because the consumer checks only once a second.
      links: async () => facts.missing().size === 0 && !(await facts.hasLost().catch(() => true)),
      broker: () => producer.ready(),
    } satisfies ReadinessChecks,
    /** Returns why partitions are paused or waiting, by `topic/partition`. */
    blockers: (): Readonly<Record<string, string>> => {
      const missing = [...facts.missing()].map(([partition, reason]) => [`${parts.linkTopic}/${partition}`, reason]);
      return Object.fromEntries([...missing, ...consumer.blockers(), ...parkedConsumer.blockers()]);
    },
    close: async () => void (await Promise.all([consumer.close(), parkedConsumer.close()])),
  };
}

/** @returns a function that counts the results of a published batch; a repeated batch is counted again */
function createLinkerMetrics(metrics: Metrics): (applied: readonly Applied[], deadLetters: number) => void {
  const facts = metrics.counter('playline_identity_facts_total', 'Link facts by result', ['result']);
  const decisions = metrics.counter('playline_identity_decisions_total', 'Decisions about links', [
    'link',
    'outcome',
    'reason',
  ]);
  return (applied, deadLetters) => {
    if (deadLetters > 0) facts.inc({ result: 'dead_letter' }, deadLetters);
    // Summed first, because a label lookup per decision costs more than the sum.
    const [results, outcomes] = [new Map<string, number>(), new Map<string, number>()];
    for (const result of applied) {
      increment(results, result.kind);
      if (result.kind !== 'decided') continue;
      for (const { link, outcome, reason } of result.decisions) increment(outcomes, `${link} ${outcome} ${reason}`);
    }
    for (const [result, count] of results) facts.inc({ result }, count);
    for (const [labels, count] of outcomes) {
      const [link, outcome, reason] = labels.split(' ');
      decisions.inc({ link: link!, outcome: outcome!, reason: reason! }, count);
    }
  };
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

interface RewindingOptions {
  open(handler: BatchHandler): Promise<Consumer>;
  onRewind(): void;
  /** Returns true if the graph has lost facts. Called every second. */
  hasLost(): Promise<boolean>;
}

const CHECK_INTERVAL_MS = 1_000;

/** Opens a consumer that is reopened at an earlier offset when the graph has lost applied facts. */
async function openRewindingConsumer(
  handler: BatchHandler,
  { open, onRewind, hasLost }: RewindingOptions,
): Promise<Consumer> {
  let closed = false;
  let reopening: Promise<void> | null = null;
  const reopen = async () => {
    onRewind();
    await consumer.close();
    if (!closed) consumer = await open(rewindingHandler);
  };
  const rewind = () => {
    reopening ??= reopen().finally(() => {
      reopening = null;
    });
  };
  const rewindingHandler: BatchHandler = {
    ...handler,
    async onBatch(records, position) {
      try {
        await handler.onBatch(records, position);
      } catch (fault) {
        if (fault instanceof GraphBehindFault) rewind();
        throw fault;
      }
    },
  };
  let consumer = await open(rewindingHandler);
  let timer: NodeJS.Timeout;
  const check = async () => {
    if (reopening === null && (await hasLost().catch(() => false)) && !closed) rewind();
    if (!closed) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => void check(), CHECK_INTERVAL_MS);
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

/** Faults within this interval belong to one outage, which is logged once. */
const OUTAGE_GAP_MS = 60_000;

/** Leaves parked facts uncommitted until their holds are released and the facts return to the link topic. */
function createParkedFlow(parts: LinkerParts): { handler: BatchHandler; count(): number } {
  const decode = createDecodeBatch(parts.schemaOf, 'parked');
  const publish = createPublish(parts.producer);
  const toParkedFact = createToParkedTopicFact(parts);
  const topics = openParkedTopics(parts);
  return {
    handler: {
      async onBatch(records, position) {
        const batch = await decode(records.filter((record) => !isDepartureRecord(record)));
        await publish(batch.deadLetters);
        reportDeadLetters(parts.logger, position, batch);
        await topics.of(position).add(batch.found.map(toParkedFact));
      },
      unfinishedFrom: (position) => topics.of(position).firstWaiting(),
    },
    count: () => topics.all().reduce((sum, topic) => sum + topic.count(), 0),
  };
}

function openParkedTopics(parts: LinkerParts) {
  const { people, producer, linkTopic, parkedTopicPace: pace } = parts;
  const publish = createPublish(producer);
  return createByAssignment(({ signal, workEnded, topic, partition }: BatchPosition) => {
    let failedAt = Number.NEGATIVE_INFINITY;
    return new ParkedTopic({
      guards: people.guards,
      publish,
      linkTopic,
      signal,
      pace,
      onMoved: workEnded,
      onFault: (error) => {
        const isNew = performance.now() - failedAt > OUTAGE_GAP_MS;
        failedAt = performance.now();
        if (isNew)
          parts.logger.warn({ error, topic, partition }, 'checking parked facts failed; retrying every second');
      },
    });
  });
}

function createToParkedTopicFact({ rules }: LinkerParts): (found: DecodedFact) => ParkedTopicFact {
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

/** Thrown because continuing would skip facts or return old decisions for new facts. */
class LogGraphMismatch extends Error {
  override readonly name = 'LogGraphMismatch';
}

/**
 * Finds a partition's start offset. Facts that Redis has not applied are read again, and uncommitted facts are read
 * again to publish their recorded decisions.
 * @throws LogGraphMismatch when the log lacks facts that the graph has applied or still needs; RetryableFault
 */
async function findStart(
  facts: Pick<ApplyFacts, 'resume'>,
  source: LinkSourcePartition,
  assigned: AssignedPartition,
): Promise<number> {
  const { topic, partition, committed, logStart, isOperatorDecision: isDecision, hasBatch } = assigned;
  const { applied, mark } = await facts.resume(source, assigned);
  if (mark !== null && (await hasBatch(mark)) === false)
    throw new LogGraphMismatch(
      `${topic}/${partition}: the log lost facts that the identity graph has applied (up to offset ${applied}), and ` +
        'their offsets may now contain other facts. ' +
        `Set LINK_TOPIC_GENERATION to ${source.generation + 1} and restart all linkers`,
    );
  // An operator skipped the earlier facts, or another generation decided them.
  if (isDecision) return committed;
  const next = applied + 1;
  // In a new generation, the graph has applied nothing, so the whole log is decided again.
  const isGraphBehind = applied >= 0 && next < Math.min(logStart, committed);
  if (isGraphBehind)
    throw new LogGraphMismatch(
      `${topic}/${partition}: facts are missing between offset ${applied}, the last offset in the identity graph, ` +
        `and offset ${logStart}, the start of the log. Empty Redis, then run "npm run rebuild"`,
    );
  return Math.min(committed, Math.max(next, logStart));
}

type ToGraphFact = ReturnType<typeof createGraphFact>;

function createParkFacts(parts: LinkerParts, toGraphFact: ToGraphFact) {
  const { parkedTopic, parkedPace: pace } = parts;
  const publish = createPublish(parts.producer);
  const parked = createByAssignment(
    ({ signal, workEnded: onMoved }) => new ParkedFacts({ publish, parkedTopic, signal, onMoved, pace }),
  );
  return {
    /** Resolves when no round is running. The batch may contain copies, whose commit also covers the originals. */
    async park({ found }: DecodedBatch, applied: readonly Applied[], position: BatchPosition): Promise<void> {
      const facts = parked.of(position);
      facts.add(toParked(found, applied, toGraphFact));
      await facts.settled();
    },
    firstWaiting: (position: BatchPosition) => parked.of(position).firstWaiting(),
  };
}

function toParked(found: DecodedBatch['found'], applied: readonly Applied[], toGraphFact: ToGraphFact): ParkedFact[] {
  return applied.flatMap((result, at) => {
    if (result.kind !== 'parked') return [];
    const { fact, record, offset } = found[at]!;
    const person = `${fact.environmentId} ${result.person.toString('hex')}`;
    return [{ person, record, keys: namedBy(toGraphFact(fact, offset)) }];
  });
}

function createByAssignment<T>(open: (position: BatchPosition) => T) {
  const assignments = new Map<AbortSignal, T>();
  return {
    of(position: BatchPosition): T {
      const { signal } = position;
      const state = assignments.get(signal) ?? open(position);
      if (!signal.aborted && !assignments.has(signal)) {
        assignments.set(signal, state);
        signal.addEventListener('abort', () => assignments.delete(signal), { once: true });
      }
      return state;
    },
    all: (): readonly T[] => [...assignments.values()],
  };
}
