import { decisionTextOf, type IdentityDecisionRecord, type IdentityLinkRecord } from '@playline/contracts';
import {
  createGraphFact,
  createIdentityKeyer,
  createIsBlocked,
  DEFAULT_LIMITS,
  SUSPECT_LIMIT,
  toDecisionRecords,
  toOverrides,
  toUnlinkSides,
} from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { runCommand } from '../../app.ts';
import { type CreateCommand, UnreachableError } from '../../command.ts';
import { createIdentityCommand } from '../../commands/identity.ts';
import type { IdentityTables, LinkFilter, LinkRow, SplitRow, StoredPerson } from '../tables.ts';
import type { UnlinkLog } from '../unlink.ts';

export const PEPPER = Buffer.alloc(32, 5);
export const ENVIRONMENT = 'demo-production';
export const keyOf = createIdentityKeyer(PEPPER);
const toGraphFact = createGraphFact({ keyOf, isBlocked: createIsBlocked() });

type Link = Pick<IdentityLinkRecord, 'link' | 'fromKind' | 'fromId' | 'toKind' | 'toId'>;

const nowhere = () => {
  throw new UnreachableError('not configured');
};

/** Table contents. Tests remove rows to simulate a writer that lags. */
interface Stored {
  readonly sides: SplitRow[];
  readonly links: LinkRow[];
  readonly persons: Map<string, StoredPerson>;
  readonly rawIds: Map<string, string>;
}

const toHex = (keys: readonly Buffer[]) => keys.map((key) => key.toString('hex'));

function matches(filter: LinkFilter, { a, b }: LinkRow): boolean {
  const keys = toHex(filter.keys);
  const [hasA, hasB] = [keys.includes(a.key), keys.includes(b.key)];
  if (filter.others === undefined) return hasA || hasB;
  const others = toHex(filter.others);
  return (hasA && others.includes(b.key)) || (hasB && others.includes(a.key));
}

function createMemoryTables({ links, persons, rawIds, sides }: Stored): IdentityTables {
  return {
    isReachable: async () => true,
    personOf: async ({ key }) => persons.get(key.toString('hex')) ?? null,
    hasEvents: async () => links.length > 0,
    linksOf: async (_, filter, { limit }) => links.filter((row) => matches(filter, row)).slice(-limit),
    joinsOf: async (_, keys) => {
      const wanted = toHex(keys);
      const isJoin = ({ a, b, outcome }: LinkRow) =>
        wanted.includes(a.key) && wanted.includes(b.key) && ['linked', 'unchanged'].includes(outcome);
      return links.filter(isJoin);
    },
    sidesOf: async (_, keys) => sides.filter(({ key }) => toHex(keys).includes(key)),
    rawIdsOf: async (_, keys) => {
      const wanted = toHex(keys);
      return new Map([...rawIds].filter(([key]) => wanted.includes(key)));
    },
  };
}

/** Published facts, and the linkers, which tests can replace. */
interface MemoryLog {
  readonly published: IdentityLinkRecord[];
  readonly repeated: number[];
  toDecision(fact: IdentityLinkRecord): Promise<IdentityDecisionRecord | null>;
}

function openMemoryLog(log: MemoryLog): UnlinkLog {
  return {
    publish: async (fact) => void log.published.push(fact),
    async awaitDecision(messageId) {
      const fact = log.published.find((each) => each.messageId.equals(messageId));
      return fact === undefined ? null : log.toDecision(fact);
    },
    async republish(offsets) {
      log.repeated.push(...offsets.map(({ offset }) => offset));
      return offsets.length;
    },
    close: async () => {},
  };
}

function store(stored: Stored, decision: IdentityDecisionRecord): void {
  const { receivedAt, eventTime, reason, moved, generation, partition, offset, step } = decision;
  const [a, b] = [decision.aKey.toString('hex'), decision.bKey.toString('hex')];
  stored.links.push({
    receivedAt,
    eventTime,
    ...decisionTextOf(decision),
    reason,
    movedCount: moved.length,
    a: { key: a, kind: decision.aKind },
    b: { key: b, kind: decision.bKind },
    messageId: decision.messageId.toString('hex'),
    traceId: decision.traceId,
    position: { generation, partition, offset, step },
  });
  for (const { key, root, linkedAt } of toOverrides(decision, 0n))
    stored.persons.set(key.toString('hex'), { personKey: root.toString('hex'), linkedAt });
  for (const { key, side } of toUnlinkSides(decision))
    stored.sides.push({ key: key.toString('hex'), side, generation, offset });
}

function createRun(command: CreateCommand, answer?: string) {
  return async (...args: string[]) => {
    const [results, progress]: [string[], string[]] = [[], []];
    const code = await runCommand([command], ['identity', ...args], {
      result: (line) => void results.push(line),
      progress: (line) => void progress.push(line),
      isInteractive: false,
      ...(answer === undefined ? {} : { prompt: async () => answer }),
    });
    return { code, results, progress: progress.join('\n'), text: results.join('\n') };
  };
}

export async function openMemoryFixture({ pepper = () => PEPPER }: { pepper?: () => Buffer } = {}) {
  const people = openMemoryPeople({ ...DEFAULT_LIMITS, suspectLimit: SUSPECT_LIMIT });
  await people.rebuild.mintEpoch();
  const stored: Stored = { links: [], persons: new Map(), rawIds: new Map(), sides: [] };
  let offset = -1;
  const decide = async (fact: IdentityLinkRecord): Promise<IdentityDecisionRecord[]> => {
    offset++;
    const position = { generation: 0, partition: 3, offset };
    const facts = [toGraphFact(fact, offset)];
    const [applied] = await people.graph.apply({ ...position, after: offset - 1, through: offset, facts });
    if (applied?.kind !== 'decided') return [];
    const decisions = toDecisionRecords(fact, position, applied.decisions);
    for (const decision of decisions) store(stored, decision);
    return decisions;
  };
  const apply = async (parts: Link, receivedAt = 1_790_000_000_000 + offset + 1) => {
    const ids = { messageId: Buffer.alloc(16, offset + 1), traceId: 'e'.repeat(32) };
    const fact = { ...parts, ...ids, environmentId: ENVIRONMENT, receivedAt, eventTime: receivedAt, unlink: [] };
    if ((await decide(fact)).length === 0) throw new Error('the link fact was not decided');
  };
  const log: MemoryLog = { published: [], repeated: [], toDecision: async (fact) => (await decide(fact))[0] ?? null };
  const unused = { openLog: nowhere, openRecords: nowhere, schemaOf: nowhere };
  const command = createIdentityCommand({
    ...unused,
    clickhouse: nowhere,
    topicPrefix: '',
    generation: 0,
    pepper,
    openPeople: async () => people,
    openTables: () => createMemoryTables(stored),
    openUnlinkLog: async () => openMemoryLog(log),
  });
  const run = createRun(command);
  return {
    people,
    stored,
    run,
    log,
    runWithAnswer: (answer: string) => createRun(command, answer),
    identify: (fromId: string, toKind: Link['toKind'], toId: string) =>
      apply({ link: 'identify', fromKind: 'anonymous', fromId, toKind, toId }),
    alias: (fromKind: Link['fromKind'], fromId: string, [toKind, toId, at]: [Link['toKind'], string, number?]) =>
      apply({ link: 'alias', fromKind, fromId, toKind, toId }, at),
  };
}
