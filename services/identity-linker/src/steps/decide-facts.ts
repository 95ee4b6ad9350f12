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

/** The ports and settings that a linker works with. */
export interface LinkerParts {
  people: Pick<People, 'graph' | 'guards' | 'ready' | 'takesWrites'>;
  producer: Producer;
  /** Reads links and decisions that are on the log. */
  log: Pick<LogReader, 'bounds' | 'read'>;
  /** Opens the consumer of the link topic. */
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Opens the consumer of the parked place. */
  openParkedConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Texts of the schemas that link facts and decisions were written with. */
  schemaOf: SchemaSource;
  /** Id of the decisions' schema. */
  decisionSchemaId(): Promise<number>;
  rules: StepRules;
  /** Generation of the link topic. */
  generation: number;
  linkTopic: string;
  /** Topic of the parked place. */
  parkedTopic: string;
  decisionTopic: string;
  /** Default: the pace of a deployment. */
  parkedPace?: ParkedPace;
  parkedTopicPace?: ParkedTopicPace;
  metrics: Metrics;
  logger: Logger;
}

/**
 * Decides the facts of a batch and publishes the decisions. Resolves when all decisions and the batch's dead letters
 * are acknowledged, so the offset may be committed after that.
 * @returns the result of each fact, in the order of the facts
 * @throws RetryableFault, GraphBehindFault; nothing of the batch is running then
 */
export type DecideFacts = (batch: DecodedBatch, position: BatchPosition) => Promise<readonly Applied[]>;

/** Creates the step. While the graph decides facts, the decisions about earlier ones are published. */
export function createDecideFacts(parts: LinkerParts, facts: ApplyFacts): DecideFacts {
  const { generation, decisionTopic } = parts;
  const publish = createPublish(parts.producer);
  const outbox = createTrimOutbox(parts.people.graph);
  return async ({ found, deadLetters }, position) => {
    const { partition, start, end, committed, mark } = position;
    const source = { generation, partition };
    const target = { topic: decisionTopic, schemaId: await fetchSchemaId(parts), source };
    const publication = createPublication(publish);
    const applied: Applied[] = [];
    const onPart = (part: readonly Applied[]) => {
      publication.add(part.flatMap((one, at) => encodeDecisions(one, found[applied.length + at]!, target)));
      for (const one of part) applied.push(one);
    };
    // Committed facts have acknowledged decisions. After going back, facts before the commit are recorded again.
    const trimming = outbox.trim(source, Math.min(start, committed) - 1);
    const applying = facts.apply(source, found, { through: end - 1, mark, onPart });
    const decided = settleAll([applying, trimming]).then(() => publication.add(deadLetters));
    // A failed batch is tried again from its beginning, so it first waits for the records that it has published.
    await settleAll([decided, decided.catch(() => {}).then(() => publication.done())]);
    outbox.note(source, found);
    return applied;
  };
}

/** Waits for all. @throws the fault of the first in the list that failed */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) if (outcome.status === 'rejected') throw outcome.reason;
}

async function fetchSchemaId({ decisionSchemaId }: LinkerParts): Promise<number> {
  try {
    return await decisionSchemaId();
  } catch (cause) {
    throw new RetryableFault('the schema of decisions could not be asked for', { cause });
  }
}

/** Where decisions go, and the source that their facts came from. */
interface Target {
  readonly topic: string;
  readonly schemaId: number;
  readonly source: LinkSourcePartition;
}

/** The decisions of a fact as records, one for each step, keyed by environment so that they keep their order. */
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

interface TrimOutbox {
  /** Notes facts with published decisions, for a later trim. */
  note(source: LinkSourcePartition, facts: readonly PositionedFact[]): void;
  /** Trims the noted facts up to `through`, which must be committed. @throws RetryableFault */
  trim(source: LinkSourcePartition, through: number): Promise<void>;
}

/** Offsets of an environment's facts whose decisions may still be in the outbox. */
interface Offsets {
  first: number;
  last: number;
}

/** Creates the step that deletes decisions from the outbox which are published and committed. */
function createTrimOutbox(graph: IdentityGraph): TrimOutbox {
  const noted = new Map<string, Map<string, Offsets>>();
  const environmentsOf = ({ generation, partition }: LinkSourcePartition) => {
    const name = `${generation}/${partition}`;
    const environments = noted.get(name) ?? new Map<string, Offsets>();
    noted.set(name, environments);
    return environments;
  };
  return {
    note(source, facts) {
      const environments = environmentsOf(source);
      for (const { fact, offset } of facts) {
        const offsets = environments.get(fact.environmentId);
        if (offsets === undefined) environments.set(fact.environmentId, { first: offset, last: offset });
        else offsets.last = Math.max(offsets.last, offset);
      }
    },
    async trim(source, through) {
      const environments = environmentsOf(source);
      const wanted = [...environments].filter(([, { first }]) => first <= through);
      if (wanted.length === 0) return;
      try {
        await graph.trim(
          source,
          through,
          wanted.map(([environmentId]) => environmentId),
        );
      } catch (cause) {
        throw new RetryableFault('the outbox could not be trimmed', { cause });
      }
      for (const [environmentId, offsets] of wanted) {
        if (offsets.last <= through) environments.delete(environmentId);
        else offsets.first = through + 1;
      }
    },
  };
}
