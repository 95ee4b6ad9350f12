import type { IdentityLinkRecord } from '@playline/contracts';
import { createGraphFact, createIdentityKeyer, createIsBlocked } from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { runCommand } from '../../app.ts';
import { type Command, UnreachableError } from '../../command.ts';
import { createIdentityCommand } from '../../commands/identity.ts';
import type { IdentityTables, LinkFilter, LinkRow, StoredPerson } from '../tables.ts';

export const PEPPER = Buffer.alloc(32, 5);
export const ENVIRONMENT = 'demo-production';
export const keyOf = createIdentityKeyer(PEPPER);
const toGraphFact = createGraphFact({ keyOf, isBlocked: createIsBlocked() });

type Link = Pick<IdentityLinkRecord, 'link' | 'fromKind' | 'fromId' | 'toKind' | 'toId'>;

const nowhere = () => {
  throw new UnreachableError('nobody has told');
};

/** What the tables hold; a test may take from it what a writer has not written yet. */
interface Stored {
  readonly links: LinkRow[];
  readonly persons: Map<string, StoredPerson>;
  readonly rawIds: Map<string, string>;
}

const toHex = (keys: readonly Buffer[]) => keys.map((key) => key.toString('hex'));

function isOf(filter: LinkFilter, { a, b }: LinkRow): boolean {
  const keys = toHex(filter.keys);
  const [hasA, hasB] = [keys.includes(a.key), keys.includes(b.key)];
  if (filter.others === undefined) return hasA || hasB;
  const others = toHex(filter.others);
  return (hasA && others.includes(b.key)) || (hasB && others.includes(a.key));
}

function createMemoryTables({ links, persons, rawIds }: Stored): IdentityTables {
  return {
    answers: async () => true,
    personOf: async ({ key }) => persons.get(key.toString('hex')) ?? null,
    knows: async () => links.length > 0,
    linksOf: async (_, filter, { limit }) => links.filter((row) => isOf(filter, row)).slice(-limit),
    joinsOf: async (_, keys) => {
      const asked = toHex(keys);
      const isJoin = ({ a, b, outcome }: LinkRow) =>
        asked.includes(a.key) && asked.includes(b.key) && ['linked', 'unchanged'].includes(outcome);
      return links.filter(isJoin);
    },
    rawIdsOf: async (_, keys) => {
      const asked = toHex(keys);
      return new Map([...rawIds].filter(([key]) => asked.includes(key)));
    },
  };
}

/** Runs a command as a script would, and keeps what it says. */
function createRun(command: Command) {
  return async (...args: string[]) => {
    const [results, progress]: [string[], string[]] = [[], []];
    const code = await runCommand([command], ['identity', ...args], {
      result: (line) => void results.push(line),
      progress: (line) => void progress.push(line),
      isInteractive: false,
    });
    return { code, results, progress: progress.join('\n'), text: results.join('\n') };
  };
}

/** A graph, tables that follow it, and the command about identities on both. */
export async function openMemoryBench({ pepper = () => PEPPER }: { pepper?: () => Buffer } = {}) {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const stored: Stored = { links: [], persons: new Map(), rawIds: new Map() };
  let offset = -1;
  const apply = async (parts: Link) => {
    offset++;
    const receivedAt = 1_790_000_000_000 + offset;
    const ids = { messageId: Buffer.alloc(16, offset), traceId: 'e'.repeat(32) };
    const fact = { ...parts, ...ids, environmentId: ENVIRONMENT, receivedAt, eventTime: receivedAt, unlink: [] };
    const facts = [toGraphFact(fact, offset)];
    const [applied] = await people.graph.apply({
      generation: 0,
      partition: 3,
      after: offset - 1,
      through: offset,
      facts,
    });
    if (applied?.kind !== 'decided') throw new Error('a fact was not decided');
    applied.decisions.forEach((decision, step) => {
      const { link, outcome, reason, moved } = decision;
      const [a, b] = [decision.aKey.toString('hex'), decision.bKey.toString('hex')];
      stored.links.push({
        ...{ receivedAt, eventTime: receivedAt, link, outcome, reason, movedCount: moved.length },
        ...{ a: { key: a, kind: decision.aKind }, b: { key: b, kind: decision.bKind } },
        ...{ messageId: ids.messageId.toString('hex'), traceId: ids.traceId },
        place: { generation: 0, partition: 3, offset, step },
      });
      for (const { key, linkedAt } of moved)
        stored.persons.set(key.toString('hex'), { personKey: decision.root.toString('hex'), linkedAt });
    });
  };
  const untold = { openLog: nowhere, schemaOf: nowhere };
  const command = createIdentityCommand({
    ...{ ...untold, clickhouse: nowhere, topicPrefix: '', generation: 0, pepper },
    openPeople: async () => people,
    openTables: () => createMemoryTables(stored),
  });
  const run = createRun(command);
  return {
    ...{ people, stored, run },
    /** An anonymous id becomes a user. */
    identify: (fromId: string, toKind: Link['toKind'], toId: string) =>
      apply({ link: 'identify', fromKind: 'anonymous', fromId, toKind, toId }),
    alias: (fromKind: Link['fromKind'], fromId: string, [toKind, toId]: [Link['toKind'], string]) =>
      apply({ link: 'alias', fromKind, fromId, toKind, toId }),
  };
}
