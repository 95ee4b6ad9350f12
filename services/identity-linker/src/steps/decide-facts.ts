import { frameRecord, identityDecisionCodec, type SchemaSource } from '@playline/contracts';
import {
  type Applied,
  type IdentityGraph,
  type LinkSourcePartition,
  type People,
  type StepRules,
  toDecisionRecords,
} from '@playline/people';
import type { Logger, Metrics } from '@playline/runtime';
import {
  type BatchHandler,
  type BatchPosition,
  type Consumer,
  type LogReader,
  type OutgoingRecord,
  type Producer,
  RetryableFault,
} from '@playline/stream';
import type { ApplyFacts, PositionedFact } from './apply-facts.ts';
import type { DecodedBatch } from './decode-batch.ts';
import type { ParkedPace } from './parked-facts.ts';
import type { ParkedTopicPace } from './parked-topic.ts';
import { createPublication, createPublish } from './publish.ts';

export interface LinkerParts {
  people: Pick<People, 'graph' | 'guards' | 'ready' | 'takesWrites'>;
  producer: Producer;
  log: Pick<LogReader, 'bounds' | 'read'>;
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  openParkedConsumer(handler: BatchHandler): Promise<Consumer>;
  schemaOf: SchemaSource;
  decisionSchemaId(): Promise<number>;
  rules: StepRules;
  generation: number;
  linkTopic: string;
  parkedTopic: string;
  decisionTopic: string;
  parkedPace?: ParkedPace;
  parkedTopicPace?: ParkedTopicPace;
  metrics: Metrics;
  logger: Logger;
}

/** Creates the step that decides facts and, in parallel, publishes the decisions about earlier facts. */
export function createDecideFacts(parts: LinkerParts, facts: ApplyFacts) {
  const { generation, decisionTopic } = parts;
  const publish = createPublish(parts.producer);
  const outbox = createTrimOutbox(parts.people.graph);
  /**
   * Resolves with one result per fact after all decisions and dead letters are acknowledged.
   * @throws RetryableFault, GraphBehindFault; no call for this batch is then still running
   */
  return async ({ found, deadLetters }: DecodedBatch, position: BatchPosition): Promise<readonly Applied[]> => {
    const { partition, start, end, committed, mark } = position;
    const source = { generation, partition };
    const target = { topic: decisionTopic, schemaId: await fetchSchemaId(parts), source };
    const publication = createPublication(publish);
    const applied: Applied[] = [];
    const onResults = (part: readonly Applied[]) => {
      publication.add(part.flatMap((result, at) => encodeDecisions(result, found[applied.length + at]!, target)));
      for (const result of part) applied.push(result);
    };
    // Decisions about committed facts are acknowledged. After a rewind, facts before the committed offset are recorded
    // again.
    const trimming = outbox.trim(source, Math.min(start, committed) - 1);
    const applying = facts.apply(source, found, { through: end - 1, mark, onResults });
    const decided = settleAll([applying, trimming]).then(() => publication.add(deadLetters));
    // A failed batch is retried from its start, so its records follow its earlier publications.
    await settleAll([decided, decided.catch(() => {}).then(() => publication.done())]);
    outbox.markPublished(source, found);
    return applied;
  };
}

/** Waits for all promises. @throws the fault of the first failed promise in the list */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) if (outcome.status === 'rejected') throw outcome.reason;
}

async function fetchSchemaId({ decisionSchemaId }: LinkerParts): Promise<number> {
  try {
    return await decisionSchemaId();
  } catch (cause) {
    throw new RetryableFault('the schema ID for decisions could not be fetched', { cause });
  }
}

interface Target {
  readonly topic: string;
  readonly schemaId: number;
  readonly source: LinkSourcePartition;
}

/** Encodes one record per step. The environment is the key, so Kafka keeps an environment's decisions in order. */
function encodeDecisions(applied: Applied, { fact, offset }: PositionedFact, target: Target): OutgoingRecord[] {
  if (applied.kind !== 'decided') return [];
  const { topic, schemaId, source } = target;
  const key = Buffer.from(fact.environmentId);
  return toDecisionRecords(fact, { ...source, offset }, applied.decisions).map((record) => ({
    topic,
    key,
    value: frameRecord(schemaId, identityDecisionCodec.encode(record)),
  }));
}

/** Removes published and committed decisions from the outbox. */
function createTrimOutbox(graph: IdentityGraph) {
  /** Offsets of facts that may be in the outbox, per partition and environment. */
  const publishedFacts = new Map<string, Map<string, { first: number; last: number }>>();
  const environmentsOf = ({ generation, partition }: LinkSourcePartition) => {
    const name = `${generation}/${partition}`;
    const environments = publishedFacts.get(name) ?? new Map<string, { first: number; last: number }>();
    publishedFacts.set(name, environments);
    return environments;
  };
  return {
    /** Records facts whose decisions are published. */
    markPublished(source: LinkSourcePartition, facts: readonly PositionedFact[]): void {
      const environments = environmentsOf(source);
      for (const { fact, offset } of facts) {
        const offsets = environments.get(fact.environmentId);
        if (offsets === undefined) environments.set(fact.environmentId, { first: offset, last: offset });
        else offsets.last = Math.max(offsets.last, offset);
      }
    },
    /** Trims the recorded facts up to `through`, which must be committed. @throws RetryableFault */
    async trim(source: LinkSourcePartition, through: number): Promise<void> {
      const environments = environmentsOf(source);
      const trimmable = [...environments].filter(([, { first }]) => first <= through);
      if (trimmable.length === 0) return;
      try {
        await graph.trim(
          source,
          through,
          trimmable.map(([environmentId]) => environmentId),
        );
      } catch (cause) {
        throw new RetryableFault('the outbox could not be trimmed', { cause });
      }
      for (const [environmentId, offsets] of trimmable) {
        if (offsets.last <= through) environments.delete(environmentId);
        else offsets.first = through + 1;
      }
    },
  };
}
