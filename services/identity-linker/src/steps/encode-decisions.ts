import { frameRecord, identityDecisionCodec } from '@playline/contracts';
import { type LinkSourcePartition, type StepDecision, toDecisionRecords } from '@playline/people';
import type { OutgoingRecord } from '@playline/stream';
import type { PositionedFact } from './apply-facts.ts';

export interface DecisionTopic {
  readonly name: string;
  readonly schemaId: number;
}

/** The decisions of a fact as records, one a step, keyed by environment so that they keep their order. */
export function encodeDecisions(
  topic: DecisionTopic,
  positioned: PositionedFact & { source: LinkSourcePartition },
  decisions: readonly StepDecision[],
): OutgoingRecord[] {
  const { fact, offset, source } = positioned;
  const key = Buffer.from(fact.environmentId);
  return toDecisionRecords(fact, { ...source, offset }, decisions).map((record) => ({
    topic: topic.name,
    key,
    value: frameRecord(topic.schemaId, identityDecisionCodec.encode(record)),
  }));
}
