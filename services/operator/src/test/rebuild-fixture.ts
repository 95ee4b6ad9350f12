import { randomBytes } from 'node:crypto';
import {
  FRAME_BYTES,
  type IdentityDecisionRecord,
  type IdentityLinkRecord,
  identityLinkCodec,
  TOPICS,
} from '@playline/contracts';
import { openErasureRecords } from '@playline/erasure/clickhouse';
import {
  createGraphFact,
  createIdentityKeyer,
  createIsBlocked,
  type People,
  toDecisionRecords,
} from '@playline/people';
import { openMemoryPeople } from '@playline/people/memory';
import { openRedisPeople } from '@playline/people/redis';
import type { OutgoingRecord } from '@playline/stream';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, until } from '@playline/testkit';
import type { Redis } from 'ioredis';
import { createAddresses } from '../addresses.ts';
import { command } from '../command.ts';
import { createIdentityCommands } from '../commands/identity-commands.ts';
import { configSchema } from '../config.ts';
import { type LogFixture, openLogFixture } from './log-fixture.ts';
import { runInProcess } from './run-in-process.ts';

/** Long enough for the linker and the writer on a busy machine. */
const WAIT_MS = 60_000;
const PEPPER = Buffer.alloc(32, 5);
export const ENVIRONMENTS = ['test-one', 'test-two', 'test-three'] as const;

const keyOf = createIdentityKeyer(PEPPER);
const toGraphFact = createGraphFact({ keyOf, isBlocked: createIsBlocked() });

export interface LinkParts extends Pick<IdentityLinkRecord, 'link' | 'fromKind' | 'fromId' | 'toKind' | 'toId'> {
  readonly environmentId: string;
}

/** Opens isolated topics, tables and an empty Redis, with linkers, writers and the commands that restore Redis. */
export async function openRebuildFixture() {
  const fixture = await openLogFixture();
  const database = await openRedisDatabase();
  const linkTopic = fixture.prefix + TOPICS.identityLinks.name;
  const url = database.url;
  const people = await openRedisPeople({ url, linkTopic, consentTopic: fixture.prefix + TOPICS.consents.name });
  const hooks: CallHooks = { beforeCall: null };
  const linkerGroup = `${fixture.prefix}linker`;
  return {
    ...fixture,
    database,
    people,
    linkerGroup,
    keyOf,
    restore: createRestore(fixture, { url, hooks }),
    hooks,
    startLinker: (settings: Record<string, string> = {}) =>
      fixture.startLinker({ REDIS_URL: url, IDENTITY_PEPPER: PEPPER.toString('hex'), ...settings }),
    publishLinks: (links: readonly LinkParts[]) => fixture.publish(links.map((link) => toLinkRecord(fixture, link))),
    awaitDecided: () =>
      until(
        'the linkers have processed all facts',
        () => fixture.isCaughtUp(TOPICS.identityLinks.name, linkerGroup),
        WAIT_MS,
      ),
    awaitWritten: (topic: string) =>
      until('the writer has written all records', () => fixture.isCaughtUp(topic, fixture.group), WAIT_MS),
    model: () => openModel(fixture),
    dump: () => dump(database.client),
    wipe: () => database.client.flushdb(),
    async close() {
      await people.close();
      await fixture.close();
      await database.close();
    },
  };
}

export type RebuildFixture = Awaited<ReturnType<typeof openRebuildFixture>>;

/** Called before each Redis call with its name, such as `guards.putHold`. An error makes the call fail. */
export interface CallHooks {
  beforeCall: ((name: string) => Promise<void> | void) | null;
}

/** Calls the hooks before every call of a people store except `close`. */
function withHooks(people: People, hooks: CallHooks): People {
  const wrap = <S extends object>(store: S, port: string): S => {
    const get = (target: S, name: string | symbol) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof name !== 'string' || name === 'close') return member;
      if (typeof member === 'object' && member !== null) return wrap(member, `${name}.`);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]) => {
        await hooks.beforeCall?.(port + name);
        return Reflect.apply(member, target, args);
      };
    };
    return new Proxy(store, { get });
  };
  return wrap(people, '');
}

/** Creates the real commands with the test's consumer groups. The commands for access keys and mints are stubs. */
function createRestore({ environment, prefix, group }: LogFixture, { url, hooks }: { url: string; hooks: CallHooks }) {
  const config = configSchema.parse({ ...environment, REDIS_URL: url, IDENTITY_PEPPER: PEPPER.toString('hex') });
  const createStub = (name: string) => async () => () =>
    command(name, 'does nothing').addCommand(command('rebuild', 'does nothing').action(() => {}));
  const [keys, mints] = [createStub('keys'), createStub('mints')];
  const addresses = createAddresses(config, '/nowhere');
  const { redis, kafka, registry, clickhouse } = addresses;
  const toPeopleOptions = () => ({
    ...redis(),
    linkTopic: prefix + TOPICS.identityLinks.name,
    consentTopic: prefix + TOPICS.consents.name,
  });
  const stores = {
    openLog: async () => openLogReader({ ...kafka(), clientId: 'operator' }),
    openProducer: (...topics: readonly string[]) => openProducer({ ...kafka(), clientId: 'operator', topics }),
    createSchemas: async () => createSchemaRegistry(registry()),
    openPeople: async () => withHooks(await openRedisPeople(toPeopleOptions()), hooks),
    openErasureRecords: async () => openErasureRecords(clickhouse()),
  };
  const groups = ['--writer-group', group, '--linker-group', `${prefix}linker`];
  return async (...args: string[]) => {
    const commands = createIdentityCommands(stores, { addresses, config, keys, mints });
    const isComplete = !args.includes('rebuild') || args.includes('--linker-group');
    const allArgs = isComplete ? args : [...args, ...groups.slice(0, args[0] === 'consent' ? 2 : 4)];
    return runInProcess(commands, allArgs);
  };
}

function toLinkRecord({ toRecord }: LogFixture, link: LinkParts): OutgoingRecord {
  const receivedAt = 1_790_000_000_000 + Math.floor(Math.random() * 1_000_000);
  const record: IdentityLinkRecord = {
    ...link,
    messageId: randomBytes(16),
    eventTime: receivedAt,
    receivedAt,
    traceId: 'e'.repeat(32),
    unlink: [],
  };
  return { ...toRecord(TOPICS.identityLinks.name, identityLinkCodec, record), key: Buffer.from(link.environmentId) };
}

/** Applies all facts in the log, in order, to an in-memory graph. @returns the graph and all decisions */
async function openModel({ read }: LogFixture): Promise<{ people: People; decisions: IdentityDecisionRecord[] }> {
  const people = openMemoryPeople();
  await people.rebuild.mintEpoch();
  const decisions: IdentityDecisionRecord[] = [];
  for (const { partition, offset, value } of await read(TOPICS.identityLinks.name)) {
    const record = identityLinkCodec.decode(value!.subarray(FRAME_BYTES));
    const position = { generation: 0, partition, offset };
    const block = { ...position, after: -1, through: offset, facts: [toGraphFact(record, offset)] };
    const [applied] = await people.graph.apply(block);
    if (applied?.kind === 'decided') decisions.push(...toDecisionRecords(record, position, applied.decisions));
  }
  return { people, decisions };
}

async function readFields(redis: Redis, name: Buffer): Promise<string[]> {
  const flat = (await redis.callBuffer('HGETALL', name)) as Buffer[];
  return flat.flatMap((field, index) =>
    index % 2 === 0 ? [`${field.toString('hex')} ${flat[index + 1]!.toString('hex')}`] : [],
  );
}

/** Splits a component into its 4-byte header and its unordered members of 23 bytes. Other values are not split. */
function toParts(value: Buffer): string[] {
  const text = value.toString('latin1');
  if ((value.length - 4) % 23 !== 0) return [text];
  return [text.slice(0, 4), ...(text.slice(4).match(/.{23}/gs) ?? [])];
}

/** Dumps the data that a rebuild must restore: graph, fences, holds and consents, with members in a fixed order. */
async function dump(redis: Redis): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for await (const names of redis.scanBufferStream({ match: '[imfuhc]:{*', count: 1_000 }))
    for (const name of names as Buffer[]) {
      const isString = (await redis.type(name)) === 'string';
      const parts = isString ? toParts((await redis.getBuffer(name))!) : await readFields(redis, name);
      found[name.toString('latin1')] = parts.sort();
    }
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}
