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

/** Outcome of a call: success, or a fault or the end of the process before or after the call is applied. */
export type CallOutcome = 'well' | 'fault before' | 'fault after' | 'kill before' | 'kill after';

const never = () => new Promise<never>(() => {});

/** People whose calls have the given outcomes in order, and then succeed. */
export function withOutcomes<P extends LinkerParts['people']>(people: P, outcomes: CallOutcome[], kill: () => void): P {
  const { graph, guards } = people;
  const faultyGuards: typeof guards = {
    ...guards,
    async heldFrom(...args) {
      const outcome = outcomes.shift() ?? 'well';
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
    async apply(block, onPart) {
      const outcome = outcomes.shift() ?? 'well';
      if (outcome === 'kill before') {
        kill();
        return never();
      }
      if (outcome === 'fault before') throw new Error('connection lost');
      const applied = await graph.apply(block, outcome === 'kill after' ? undefined : onPart);
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

/** A producer whose sends have the given outcomes in order. A killed producer sends nothing more. */
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
      const outcome = outcomes.shift() ?? 'well';
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

/** A fact as the gateway publishes it. */
export function toOutgoing(topic: string, fact: IdentityLinkRecord, schemaId = SCHEMA_ID): OutgoingRecord {
  const value = frameRecord(schemaId, identityLinkCodec.encode(fact));
  return { topic, key: Buffer.from(fact.environmentId), value };
}

export function fromDecision(value: Buffer | null): IdentityDecisionRecord {
  return identityDecisionCodec.decode(value!.subarray(FRAME_BYTES));
}

/** A decision as a string; equal strings mean equal decisions. */
export function toText(decision: IdentityDecisionRecord): string {
  return JSON.stringify(decision, (_, part) =>
    part?.type === 'Buffer' ? Buffer.from(part.data).toString('hex') : part,
  );
}

/** Name of the decided step of a fact. */
export function stepOf({ partition, offset, step }: IdentityDecisionRecord): string {
  return `${partition}/${offset}/${step}`;
}

const SCHEMAS = new Map([
  [SCHEMA_ID, identityLinkCodec.schema],
  [DECISION_SCHEMA_ID, identityDecisionCodec.schema],
]);

/** The dependencies of a linker other than its graph and log. */
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

/** A logger whose lines tests can read. */
export function openLines(level: 'warn' | 'error') {
  const lines: string[] = [];
  return {
    lines,
    logger: createLogger({ service: 'test', level }, { write: (line: string) => void lines.push(line) }),
  };
}
