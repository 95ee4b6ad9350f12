import { randomUUID } from 'node:crypto';
import type { IdentityDecisionRecord, IdentityKind, IdentityLinkRecord } from '@playline/contracts';
import type { Applied, IdentityGraph } from '../graph.ts';
import { type StepDecision, toDecisionRecords } from '../identities/decisions.ts';
import { toUnlinkFact } from '../identities/facts.ts';
import { createIdentityKeyer } from '../identities/keyer.ts';
import { createIsBlocked } from '../identities/placeholders.ts';
import { createGraphFact, type GraphFact } from '../identities/steps.ts';

/** A readable identity: `steam:s1`, `anonymous:a1`. */
export type Name = `${IdentityKind}:${string}`;

const keyOfId = createIdentityKeyer(Buffer.alloc(32, 9));
const toGraphFact = createGraphFact({ keyOf: keyOfId, isBlocked: createIsBlocked() });

function split(name: Name): [IdentityKind, string] {
  const at = name.indexOf(':');
  return [name.slice(0, at) as IdentityKind, name.slice(at + 1)];
}

export interface FactOptions {
  link: 'identify' | 'alias' | 'unlink';
  from?: Name;
  to: Name;
  /** The identities to unlink in addition to `to`. */
  extra?: readonly Name[];
  receivedAt?: number;
  eventTime?: number;
}

/** Creates an isolated environment that maps names to keys and assigns increasing offsets. */
export function createScenario() {
  const environmentId = `test-${randomUUID()}`;
  let next = 0;

  const toFact = ({ link, from, to, extra = [], receivedAt = 1_000_000, eventTime = receivedAt }: FactOptions) => {
    const origin = { environmentId, messageId: Buffer.alloc(16), traceId: '0'.repeat(32) };
    if (link === 'unlink') {
      const unlink = [to, ...extra].map((name) => ({ key: keyOf(name), kind: split(name)[0] }));
      return { ...toUnlinkFact({ ...origin, receivedAt, unlink }), eventTime };
    }
    const [fromKind, fromId] = from === undefined ? (['anonymous', ''] as const) : split(from);
    const [toKind, toId] = split(to);
    const ids = { fromKind, fromId, toKind, toId };
    const fact: IdentityLinkRecord = { ...origin, link, ...ids, eventTime, receivedAt, unlink: [] };
    return fact;
  };
  const keyOf = (name: Name) => keyOfId(environmentId, ...split(name));
  const position = (options: FactOptions): GraphFact => toGraphFact(toFact(options), next++);

  /** Applies a fact and returns each step's `outcome` or `outcome: reason`. */
  const apply = async (graph: IdentityGraph, options: FactOptions): Promise<string[]> => {
    const fact = position(options);
    const [applied] = await graph.apply({
      generation: 0,
      partition: 0,
      after: fact.offset - 1,
      through: fact.offset,
      facts: [fact],
    });
    return describeOutcome(applied!);
  };
  const toRecords = (fact: GraphFact, decisions: readonly StepDecision[]): IdentityDecisionRecord[] =>
    toDecisionRecords(
      { ...toFact({ link: 'identify', to: 'custom:x', receivedAt: fact.receivedAt }), eventTime: fact.eventTime },
      { generation: 0, partition: 0, offset: fact.offset },
      decisions,
    );
  return { environmentId, keyOf, position, apply, toRecords };
}
export type Scenario = ReturnType<typeof createScenario>;

export function describeOutcome(applied: Applied): string[] {
  if (applied.kind !== 'decided') return [applied.kind];
  return applied.decisions.map(({ outcome, reason }) => (reason === '' ? outcome : `${outcome}: ${reason}`));
}

/** Converts buffers to hexadecimal strings, so that decisions can be compared and printed. */
export function describeValue(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, part) => (part?.type === 'Buffer' ? Buffer.from(part.data).toString('hex') : part)),
  );
}
