import type { SchemaSource } from '@playline/contracts';
import type { ReadinessChecks } from '@playline/http';
import {
  type Applied,
  createGraphFact,
  GraphBehindFault,
  type LinkSourcePartition,
  type People,
  type StepRules,
} from '@playline/people';
import type { Closable, Logger, Metrics } from '@playline/runtime';
import {
  type BatchHandler,
  type BatchPosition,
  type Consumer,
  type OutgoingRecord,
  type Producer,
  RetryableFault,
  type StreamRecord,
  toDeadLetter,
} from '@playline/stream';
import { createLinkerMetrics, watchRedis } from './linker-metrics.ts';
import { createApplyFacts, type PositionedFact } from './steps/apply-facts.ts';
import { createDecodeFact } from './steps/decode-fact.ts';
import { type DecisionTopic, encodeDecisions } from './steps/encode-decisions.ts';
import { findStart } from './steps/find-start.ts';
import { createParkedFacts, type ParkedFact, type ParkedFacts, type ParkedPace } from './steps/parked-facts.ts';
import { createPublication, createPublish, type Publish } from './steps/publish.ts';
import { createTrimOutbox } from './steps/trim-outbox.ts';

export interface LinkerParts {
  people: Pick<People, 'graph' | 'ready' | 'takesWrites'>;
  producer: Producer;
  /** Opens the consumer of the link topic. */
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Texts of the schemas that link facts were written with. */
  schemaOf: SchemaSource;
  /** Id of the decisions' schema. */
  decisionSchemaId(): Promise<number>;
  rules: StepRules;
  /** Generation of the link topic. */
  generation: number;
  decisionTopic: string;
  /** Default: that of a deployment. */
  parkedPace?: ParkedPace;
  metrics: Metrics;
  logger: Logger;
}

export interface Linker extends Closable {
  readonly ready: ReadinessChecks;
  /** Why partitions stand or do not go on, by `topic/partition`. */
  hindrances(): Readonly<Record<string, string>>;
}

/** A batch is trimmed and committed once; more would be long to repeat after a fault. */
const BATCH_RECORDS_MAX = 4_000;

type Found = PositionedFact & { record: StreamRecord };

function createDecodeBatch(parts: LinkerParts) {
  const decodeFact = createDecodeFact(parts.schemaOf);
  return async (records: readonly StreamRecord[]) => {
    const found: Found[] = [];
    const deadLetters: OutgoingRecord[] = [];
    let firstLetter: { offset: number; reason: string } | null = null;
    for (const record of records) {
      const answer = decodeFact(record);
      const decoded = answer instanceof Promise ? await answer : answer;
      if (decoded.kind === 'fact') found.push({ fact: decoded.fact, offset: record.offset, record });
      else {
        deadLetters.push(toDeadLetter({ record, reason: decoded.reason }, 'link'));
        firstLetter ??= { offset: record.offset, reason: decoded.reason };
      }
    }
    return { found, deadLetters, firstLetter };
  };
}

/** A batch is read, decided and published whole before its offset is committed: a crash repeats it, never skips it. */
export function createBatchHandler(parts: LinkerParts): BatchHandler {
  const { generation } = parts;
  const { graph } = parts.people;
  const decode = createDecodeBatch(parts);
  const facts = createApplyFacts(graph, createGraphFact(parts.rules));
  const publish = createPublish(parts.producer);
  const outbox = createTrimOutbox(graph);
  const parkedOf = createParkedByAssignment(publish, parts.parkedPace);
  const metrics = createLinkerMetrics(parts.metrics);

  return {
    batchRecordsMax: BATCH_RECORDS_MAX,
    async onBatch(records, position) {
      const source = { generation, partition: position.partition };
      const topic = { name: parts.decisionTopic, schemaId: await askSchemaId(parts) };
      const { found, deadLetters, firstLetter } = await decode(records);
      const publication = createPublication(publish);
      const applied: Applied[] = [];
      const onPart = (part: readonly Applied[]) => {
        const positioned = found.slice(applied.length, applied.length + part.length);
        publication.add(part.flatMap((one, at) => toOutgoing(one, { ...positioned[at]!, source, topic })));
        for (const one of part) applied.push(one);
      };
      // What is committed is acknowledged. After going back, facts before the commit are decided and recorded anew.
      const trimming = outbox.trim(source, Math.min(position.start, position.committed) - 1);
      const applying = facts.apply(source, found, { through: position.end - 1, mark: position.mark, onPart });
      const decided = settleAll([applying, trimming]).then(() => publication.add(deadLetters));
      // A batch that fails waits for what it has handed over: it is tried again from its beginning.
      await settleAll([decided, decided.catch(() => {}).then(() => publication.done())]);
      outbox.note(source, found);
      metrics.batch(applied, deadLetters.length);
      if (firstLetter !== null) tellDeadLetters(parts.logger, { ...position, ...firstLetter }, deadLetters.length);
      const parked = parkedOf(position);
      parked.add(toParked(found, applied));
      // Copies of facts that went round may be in this batch: what they are copies of is committed with it.
      await parked.settled();
    },
    unfinishedFrom: (position) => parkedOf(position).firstWaiting(),
    onAssign: (assigned) => findStart(facts, { generation, partition: assigned.partition }, assigned),
  };
}

function tellDeadLetters(
  logger: Logger,
  { topic, partition, offset, reason }: { topic: string; partition: number; offset: number; reason: string },
  count: number,
): void {
  logger.warn({ topic, partition, offset, reason, count }, 'records went to the dead letters');
}

/** Waits for all; throws the fault of the first that failed. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) if (outcome.status === 'rejected') throw outcome.reason;
}

type Place = Found & { source: LinkSourcePartition; topic: DecisionTopic };

function toOutgoing(applied: Applied, place: Place): OutgoingRecord[] {
  return applied.kind === 'decided' ? encodeDecisions(place.topic, place, applied.decisions) : [];
}

function toParked(found: readonly Found[], applied: readonly Applied[]): ParkedFact[] {
  return applied.flatMap((one, at) => {
    if (one.kind !== 'parked') return [];
    const { fact, record } = found[at]!;
    return [{ person: `${fact.environmentId} ${one.person.toString('hex')}`, record }];
  });
}

/** Parked facts of each assignment, which its signal stands for: a partition that comes back begins with none. */
function createParkedByAssignment(publish: Publish, pace?: ParkedPace): (position: BatchPosition) => ParkedFacts {
  const assignments = new WeakMap<AbortSignal, ParkedFacts>();
  return ({ signal }) => {
    const parked = assignments.get(signal) ?? createParkedFacts(publish, signal, pace);
    assignments.set(signal, parked);
    return parked;
  };
}

async function askSchemaId(parts: LinkerParts): Promise<number> {
  try {
    return await parts.decisionSchemaId();
  } catch (cause) {
    throw new RetryableFault('the schema of decisions could not be asked for', { cause });
  }
}

/**
 * Opens the linker. When the graph has lost facts that it had applied, the consumer is closed and opened again, since
 * that is how a position goes back.
 */
export async function openLinker(parts: LinkerParts): Promise<Linker> {
  let closed = false;
  let reopening: Promise<void> | null = null;
  const handler = createBatchHandler(parts);
  watchRedis(parts.metrics, parts.people);
  const rewinds = parts.metrics.counter('identity_rewinds_total', 'Times that the graph had lost facts it had applied');
  const reopen = async () => {
    rewinds.inc();
    parts.logger.error('the identity graph has lost facts that it had applied: going back to them');
    await consumer.close();
    if (!closed) consumer = await parts.openConsumer(watched);
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
  let consumer = await parts.openConsumer(watched);
  return {
    ready: {
      consumer: () => reopening === null && consumer.ready(),
      graph: () => parts.people.ready(),
      broker: () => parts.producer.ready(),
    },
    hindrances: () => Object.fromEntries(consumer.hindrances()),
    async close() {
      closed = true;
      await reopening;
      await consumer.close();
    },
  };
}
