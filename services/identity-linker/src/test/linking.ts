import { randomUUID } from 'node:crypto';
import {
  FRAME_BYTES,
  frameRecord,
  type IdentityDecisionRecord,
  type IdentityLinkRecord,
  identityDecisionCodec,
  identityLinkCodec,
} from '@playline/contracts';
import { createIdentityKeyer, createIsBlocked } from '@playline/people';
import { createLogger, createMetrics } from '@playline/runtime';
import type { OutgoingRecord, Producer } from '@playline/stream';
import type { LinkerParts } from '../steps/decide-facts.ts';

export const SCHEMA_ID = 7;
const DECISION_SCHEMA_ID = 8;

/** Outcome of a call: success, or a fault or a killed process before or after the call takes effect. */
export type CallOutcome = 'success' | 'fault before' | 'fault after' | 'kill before' | 'kill after';

const never = () => new Promise<never>(() => {});

/** Wraps `people` so that its calls have the given outcomes in order; later calls succeed. */
export function withOutcomes<P extends LinkerParts['people']>(people: P, outcomes: CallOutcome[], kill: () => void): P {
  const { graph, guards } = people;
  const faultyGuards: typeof guards = {
    ...guards,
    async heldFrom(...args) {
      const outcome = outcomes.shift() ?? 'success';
      if (outcome.startsWith('kill')) {
        kill();
        return never();
      }
      if (outcome.startsWith('fault')) throw new Error('connection lost');
      return guards.heldFrom(...args);
    },
  };
  const faultyGraph: typeof graph = {
    ...graph,
    async apply(block, onResults) {
      const outcome = outcomes.shift() ?? 'success';
      if (outcome === 'kill before') {
        kill();
        return never();
      }
      if (outcome === 'fault before') throw new Error('connection lost');
      const applied = await graph.apply(block, outcome === 'kill after' ? undefined : onResults);
      if (outcome === 'kill after') {
        kill();
        return never();
      }
      if (outcome === 'fault after') throw new Error('connection lost');
      return applied;
    },
  };
  return { ...people, graph: faultyGraph, guards: faultyGuards };
}

/** Wraps a producer so that its sends have the given outcomes in order. A killed producer sends nothing more. */
export function producerWithOutcomes(producer: Producer, outcomes: CallOutcome[], kill: () => void): Producer {
  let isKilled = false;
  const killProducer = () => {
    isKilled = true;
    kill();
  };
  return {
    bytesHeld: 0,
    send(records, done) {
      if (isKilled) return;
      const outcome = outcomes.shift() ?? 'success';
      if (outcome === 'kill before') killProducer();
      else if (outcome === 'fault before') setImmediate(() => done(new Error('no broker')));
      else
        producer.send(records, (fault) => {
          if (outcome === 'kill after') killProducer();
          else done(outcome === 'fault after' ? new Error('no response') : fault);
        });
    },
    sendForOffset: (record) => producer.sendForOffset(record),
    ready: () => producer.ready(),
    close: () => producer.close(),
  };
}

export function toFact(parts: Partial<IdentityLinkRecord>): IdentityLinkRecord {
  return {
    environmentId: 'test',
    messageId: Buffer.alloc(16, 3),
    link: 'identify',
    traceId: 'e'.repeat(32),
    fromKind: 'anonymous',
    fromId: 'a',
    toKind: 'untyped',
    toId: 'u',
    eventTime: 1_000,
    receivedAt: 1_000,
    unlink: [],
    ...parts,
  };
}

export function toOutgoing(topic: string, fact: IdentityLinkRecord, schemaId = SCHEMA_ID): OutgoingRecord {
  const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
  return { topic, key: Buffer.from(fact.environmentId), value };
}

export function fromDecision(value: Buffer | null): IdentityDecisionRecord {
  return identityDecisionCodec.decode(value!.subarray(FRAME_BYTES));
}

/** Serializes a decision. Equal decisions have equal strings. */
export function toText(decision: IdentityDecisionRecord): string {
  return JSON.stringify(decision, (_, value) =>
    value?.type === 'Buffer' ? Buffer.from(value.data).toString('hex') : value,
  );
}

export function stepOf({ partition, offset, step }: IdentityDecisionRecord): string {
  return `${partition}/${offset}/${step}`;
}

const SCHEMAS = new Map([
  [SCHEMA_ID, identityLinkCodec.schema],
  [DECISION_SCHEMA_ID, identityDecisionCodec.schema],
]);

/** Creates a linker's dependencies, except the graph and the log. */
export function createParts(): Pick<
  LinkerParts,
  'schemaOf' | 'decisionSchemaId' | 'rules' | 'generation' | 'metrics' | 'logger'
> {
  return {
    schemaOf: async (id) => SCHEMAS.get(id) ?? null,
    decisionSchemaId: async () => DECISION_SCHEMA_ID,
    rules: { keyOf: createIdentityKeyer(Buffer.alloc(32, 5)), isBlocked: createIsBlocked() },
    generation: 0,
    metrics: createMetrics(`linker-${randomUUID()}`),
    logger: createLogger({ service: 'identity-linker', level: 'silent' }),
  };
}

export function openLines(level: 'warn' | 'error') {
  const lines: string[] = [];
  return {
    lines,
    logger: createLogger({ service: 'test', level }, { write: (line: string) => void lines.push(line) }),
  };
}
