import type { SchemaSource } from '@playline/contracts';
import type { ReadinessChecks } from '@playline/http';
import {
  type Applied,
  createGraphFact,
  GraphBehindFault,
  type LinkSourcePartition,
  namedBy,
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
} from '@playline/stream';
import { createByAssignment } from './by-assignment.ts';
import { createLinkerMetrics, watchRedis, watchWaiting } from './linker-metrics.ts';
import { createParkedFlow } from './parked-flow.ts';
import { createApplyFacts } from './steps/apply-facts.ts';
import { createDecodeBatch, type Found, tellDeadLetters } from './steps/decode-batch.ts';
import { type DecisionTopic, encodeDecisions } from './steps/encode-decisions.ts';
import { findStart } from './steps/find-start.ts';
import { createParkedFacts, type ParkedFact, type ParkedPace } from './steps/parked-facts.ts';
import type { PlacePace } from './steps/parked-place.ts';
import { createPublication, createPublish } from './steps/publish.ts';
import { createTrimOutbox } from './steps/trim-outbox.ts';

export interface LinkerParts {
  people: Pick<People, 'graph' | 'guards' | 'ready' | 'takesWrites'>;
  producer: Producer;
  /** Opens the consumer of the link topic. */
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Opens the consumer of the parked place. */
  openParkedConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Texts of the schemas that link facts were written with. */
  schemaOf: SchemaSource;
  /** Id of the decisions' schema. */
  decisionSchemaId(): Promise<number>;
  rules: StepRules;
  /** Generation of the link topic. */
  generation: number;
  linkTopic: string;
  /** The parked place of its facts. */
  parkedTopic: string;
  decisionTopic: string;
  /** Default: those of a deployment. */
  parkedPace?: ParkedPace;
  placePace?: PlacePace;
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

/** A batch is read, decided and published whole before its offset is committed: a crash repeats it, never skips it. */
export function createBatchHandler(parts: LinkerParts): BatchHandler {
  const { generation } = parts;
  const { graph } = parts.people;
  const decode = createDecodeBatch(parts.schemaOf, 'link');
  const toGraphFact = createGraphFact(parts.rules);
  const facts = createApplyFacts(graph, toGraphFact);
  const publish = createPublish(parts.producer);
  const outbox = createTrimOutbox(graph);
  const { parkedTopic, parkedPace: pace } = parts;
  const parkedFacts = createByAssignment(({ signal, workEnded: onLeft }: BatchPosition) =>
    createParkedFacts({ publish, parkedTopic, signal, onLeft, pace }),
  );
  const metrics = createLinkerMetrics(parts.metrics);

  return {
    batchRecordsMax: BATCH_RECORDS_MAX,
    async onBatch(records, position) {
      const source = { generation, partition: position.partition };
      const topic = { name: parts.decisionTopic, schemaId: await askSchemaId(parts) };
      const batch = await decode(records);
      const { found, deadLetters } = batch;
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
      tellDeadLetters(parts.logger, position, batch);
      const parked = parkedFacts.of(position);
      parked.add(toParked(found, applied, toGraphFact));
      // Copies of facts that went round may be in this batch: what they are copies of is committed with it.
      await parked.settled();
    },
    unfinishedFrom: (position) => parkedFacts.of(position).firstWaiting(),
    onAssign: (assigned) => findStart(facts, { generation, partition: assigned.partition }, assigned),
  };
}

/** Waits for all; throws the fault of the first that failed. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) if (outcome.status === 'rejected') throw outcome.reason;
}

type Place = Found & { source: LinkSourcePartition; topic: DecisionTopic };

function toOutgoing(applied: Applied, place: Place): OutgoingRecord[] {
  return applied.kind === 'decided' ? encodeDecisions(place.topic, place, applied.decisions) : [];
}

function toParked(
  found: readonly Found[],
  applied: readonly Applied[],
  toGraphFact: ReturnType<typeof createGraphFact>,
): ParkedFact[] {
  return applied.flatMap((one, at) => {
    if (one.kind !== 'parked') return [];
    const { fact, record, offset } = found[at]!;
    const person = `${fact.environmentId} ${one.person.toString('hex')}`;
    return [{ person, record, keys: namedBy(toGraphFact(fact, offset)) }];
  });
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
  const parked = createParkedFlow(parts);
  watchWaiting(parts.metrics, parked.count);
  const parkedConsumer = await parts.openParkedConsumer(parked.handler);
  return {
    ready: {
      consumer: () => reopening === null && consumer.ready(),
      parked: () => parkedConsumer.ready(),
      graph: () => parts.people.ready(),
      broker: () => parts.producer.ready(),
    },
    hindrances: () => Object.fromEntries([...consumer.hindrances(), ...parkedConsumer.hindrances()]),
    async close() {
      closed = true;
      await reopening;
      await Promise.all([consumer.close(), parkedConsumer.close()]);
    },
  };
}
