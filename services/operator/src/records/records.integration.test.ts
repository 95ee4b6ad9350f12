import { randomBytes } from 'node:crypto';
import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  addEnvironment,
  archiveProject,
  COLLECTIONS,
  createKey,
  createKeyVerifier,
  createProject,
  createRecordStore,
  DEFAULT_ENVIRONMENTS,
  type KeyKind,
  KeyStoreFault,
  minuteOf,
  type NewKey,
  openKeys,
  openRateLimitKeyFinder,
  PROJECTS,
  RATE_LIMIT_KEYS,
  RECORD_KINDS,
  SIGNABLE_KEYS,
} from '@playline/access-keys';
import { openRedisKeyUsage, openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { accessKeyCodec, FRAME_BYTES, projectCodec, rateLimitKeyCodec, TOPICS } from '@playline/contracts';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { CreateCommand } from '../command.ts';
import { createCollectionsCommand } from '../commands/collections.ts';
import { createKeysCommand, type KeysContext } from '../commands/keys.ts';
import { createProjectsCommand } from '../commands/projects.ts';
import { createMemoryAccess, createMemorySources } from '../test/memory-sources.ts';
import { openRecordStores, type RecordStores } from '../test/record-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createRecordSources } from './record-sources.ts';

const KEY_PREFIX = 'svcapik';
let recordStores: RecordStores;
let view: RedisRecordView<AccessKeyRecord>;
beforeAll(async () => {
  recordStores = await openRecordStores();
  view = await openRedisRecords(ACCESS_KEYS, { url: recordStores.redis.url });
});
afterAll(async () => {
  await view?.close();
  await recordStores?.close();
});

const openSources = (changedBy = 'ada', requestId = randomBytes(4).toString('hex')) =>
  createRecordSources(recordStores.createStores(), {
    topicPrefix: recordStores.topicPrefix,
    author: { changedBy, requestId },
  });
const logged = (topic: string) => recordStores.createStores().readTopic(recordStores.topicPrefix + topic);

async function run(commands: readonly CreateCommand[], ...args: string[]) {
  const { code, results, progress } = await runInProcess(commands, [...args, '--json']);
  return { code, printed: results.map((line) => JSON.parse(line)), progress };
}

function asUser(changedBy: string, ...args: string[]) {
  const sourcesOf = openSources(changedBy);
  return run(
    [createProjectsCommand({ keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) })],
    'projects',
    ...args,
  );
}
const loggedProjects = async () =>
  (await logged(TOPICS.projects.name)).map(({ value }) => projectCodec.decode(value!.subarray(FRAME_BYTES)));

it('concurrent project commands create the project demo only once in a new deployment', async () => {
  await Promise.all(['ada', 'bob', 'eve'].map((name) => asUser(name, 'list')));
  expect(await loggedProjects()).toMatchObject([
    { id: 'demo', revision: 1, environments: [{ id: 'demo-production' }, { id: 'demo-development' }] },
  ]);
});

it('project commands log the complete project with the author and the request id of each change', async () => {
  await asUser('ada', 'add-environment', '--project', 'demo', '--name', 'staging', '--kind', 'development');
  await asUser('bob', 'limit', '--project', 'demo', '--environment', 'staging', '--cap', '5/10', '--limit', '4/8');
  const changes = (await loggedProjects()).filter(({ id }) => id === 'demo').slice(-2);
  expect(changes).toMatchObject([
    { revision: 2, changedBy: 'ada', environments: [{}, {}, { id: 'demo-staging', cap: null }] },
    {
      revision: 3,
      changedBy: 'bob',
      environments: [{}, {}, { cap: { perSecond: 5, burst: 10 }, limit: { burst: 8 } }],
    },
  ]);
  expect(changes[0]!.requestId).not.toBe(changes[1]!.requestId);
});

let project: string;
const projects = createMemorySources(PROJECTS);
const shown: { kind: KeyKind; key: string }[] = [];
beforeEach(async () => {
  project = `p-${randomBytes(4).toString('hex')}`;
  const store = createRecordStore(projects, projects.author);
  await createProject({ store }, { name: project, id: project, environments: DEFAULT_ENVIRONMENTS });
});

const author = { changedBy: 'ada', requestId: 'r-1' };
const sources = () => openSources('ada', 'r-1')(ACCESS_KEYS);

/** @param overrides replaces parts of the key stores, to simulate failures after the log write */
const contextOf = (overrides: Partial<KeysContext['keys']> = {}): KeysContext => ({
  ...createMemoryAccess(),
  keys: { ...sources(), ...overrides },
  kinds: [sources() as unknown as KeysContext['kinds'][number]],
  openUsage: () => openRedisKeyUsage({ url: recordStores.redis.url }),
  projects,
  prefix: KEY_PREFIX,
  publish: async () => {},
});

async function runKeys(rest: string[], overrides: Partial<KeysContext['keys']> = {}) {
  const ofProject = rest[0] === 'rebuild' ? [] : ['--project', project];
  const done = await run([createKeysCommand(contextOf(overrides))], 'keys', ...rest, ...ofProject);
  for (const { kind, key } of done.printed) if (key !== undefined) shown.push({ kind, key });
  return done;
}

const changeArgs = (subcommand: string, kind: KeyKind) => [subcommand, '--environment', 'production', '--kind', kind];

const failing: Partial<KeysContext['keys']> = {
  openView: async () => {
    const opened = await openRedisRecords(ACCESS_KEYS, { url: recordStores.redis.url });
    return { ...opened, update: () => Promise.reject(new Error('killed')) };
  },
};

/** Verifies every printed key without a cache. Returns the key id, 'refused' or an error name. */
async function verdicts(): Promise<string[]> {
  const keys = openKeys({ view, readEveryMs: 0 });
  const verifiers = {
    publishable: createKeyVerifier({ keys, prefix: KEY_PREFIX, kind: 'publishable' }),
    secret: createKeyVerifier({ keys, prefix: KEY_PREFIX, kind: 'secret' }),
  };
  const verdict = async ({ kind, key }: (typeof shown)[number]) => {
    try {
      return (await verifiers[kind](key))?.keyId ?? 'refused';
    } catch (fault) {
      return (fault as Error).name;
    }
  };
  return Promise.all(shown.map(verdict));
}

it('key commands log every change with the environment and kind as the record key, and never log a key itself', async () => {
  const [{ keyId, key }] = (await runKeys(changeArgs('create', 'secret'))).printed;
  await runKeys(changeArgs('revoke', 'secret'));
  const records = await logged(TOPICS.accessKeys.name);
  const ofKey = records.filter((record) => String(record.key) === `${project}-production/secret`);
  const states = ofKey.map(({ value }) => accessKeyCodec.decode(value!.subarray(FRAME_BYTES)));
  expect(states).toMatchObject([
    { action: 'create', live: { keyId }, ended: [], ...author },
    { action: 'revoke', live: null, ended: [{ keyId }] },
  ]);
  const bytes = records.map(({ value }) => value!.toString('latin1')).join();
  expect(bytes).not.toContain(key.slice(key.indexOf('-') + 1));
});

it('keys origins sets and shows the allowed origins of a publishable key, and logs the change', async () => {
  const [{ keyId }] = (await runKeys(changeArgs('create', 'publishable'))).printed;
  const origins = ['origins', '--environment', 'production'];
  const list = ['https://game.example', 'http://localhost:5173'];
  expect((await runKeys([...origins, '--origins', list.join(', ')])).printed).toMatchObject([{ keyId, origins: list }]);
  expect((await runKeys(origins)).printed).toMatchObject([{ keyId, origins: list, state: 'live' }]);
  const records = await logged(TOPICS.accessKeys.name);
  const ofKey = records.filter((record) => String(record.key) === `${project}-production/publishable`);
  const states = ofKey.map(({ value }) => accessKeyCodec.decode(value!.subarray(FRAME_BYTES)).live?.origins);
  expect(states).toEqual([[], list]);
  await recordStores.redis.client.flushdb();
  expect((await runKeys(origins)).printed).toMatchObject([{ origins: list }]);
  expect((await runKeys([...origins, '--origins', 'any'])).printed).toMatchObject([{ origins: [] }]);
  expect(await runKeys([...origins, '--origins', 'game.example'])).toMatchObject({ code: 1, printed: [] });
  expect(await runKeys([...origins, '--kind', 'secret'])).toMatchObject({ code: 2, printed: [] });
});

it('keys rebuild restores all keys in an emptied Redis, and keys cannot be verified before the rebuild', async () => {
  await runKeys(changeArgs('create', 'publishable'));
  await runKeys(changeArgs('create', 'secret'));
  await runKeys(changeArgs('refresh', 'secret'));
  await runKeys(changeArgs('revoke', 'publishable'));
  const before = await verdicts();
  expect(before).toContain('refused');
  await recordStores.redis.client.flushdb();
  expect(new Set(await verdicts())).toEqual(new Set([KeyStoreFault.name]));
  expect((await runKeys(['rebuild'])).code).toBe(0);
  expect(await verdicts()).toEqual(before);
});

it('a key change that fails between Kafka and Redis is completed by the next key command or by a rebuild', async () => {
  const [first] = (await runKeys(changeArgs('create', 'secret'))).printed;
  const failed = await runKeys(changeArgs('refresh', 'secret'), failing);
  expect(failed).toMatchObject({ code: 3, printed: [], progress: expect.stringContaining('will apply the change') });
  expect((await verdicts()).at(-1)).toBe(first.keyId);
  expect((await runKeys(['rebuild'])).code).toBe(0);
  expect((await verdicts()).at(-1)).toBe('refused');
  const [successor] = (await runKeys(changeArgs('refresh', 'secret'))).printed;
  expect((await verdicts()).at(-1)).toBe(successor.keyId);
  expect((await runKeys(changeArgs('revoke', 'secret'), failing)).code).toBe(3);
  expect((await verdicts()).at(-1)).toBe(successor.keyId);
  expect(await runKeys(changeArgs('refresh', 'secret'))).toMatchObject({ code: 1, printed: [] });
  expect((await verdicts()).at(-1)).toBe('refused');
});

it('concurrent refreshes of a key leave exactly one live key', async () => {
  await runKeys(changeArgs('create', 'secret'));
  const results = await Promise.all(Array.from({ length: 4 }, () => runKeys(changeArgs('refresh', 'secret'))));
  expect(results.some(({ code }) => code === 0)).toBe(true);
  const before = await verdicts();
  expect((await runKeys(['rebuild'])).code).toBe(0);
  expect(await verdicts()).toEqual(before);
  expect((await runKeys(['list'])).printed.filter(({ state }) => state === 'live')).toHaveLength(1);
});

it('keys revoke revokes a key even if its project is archived', async () => {
  const store = createRecordStore(projects, projects.author);
  await addEnvironment({ store }, { project, name: 'staging', kind: 'production' });
  const rest = ['--environment', 'staging', '--kind', 'secret'];
  expect((await runKeys(['create', ...rest])).code).toBe(0);
  const { code, progress } = await runKeys(['create', ...rest]);
  expect({ code, output: progress }).toEqual({
    code: 1,
    output: expect.stringContaining(`refresh --project ${project} --environment ${project}-staging --kind secret`),
  });
  await archiveProject({ store }, project);
  expect((await runKeys(['revoke', ...rest])).code).toBe(0);
});

it('keys list shows the usage of each key, as JSON and as text', async () => {
  const [used] = (await runKeys(changeArgs('create', 'secret'))).printed;
  await runKeys(changeArgs('create', 'publishable'));
  const usage = await openRedisKeyUsage({ url: recordStores.redis.url });
  const lastUsedAt = Date.now();
  const lastRefusal = { at: lastUsedAt, reason: 'VALIDATION_ERROR', traceId: 'f'.repeat(32) };
  const counts = { keyId: used.keyId, uses: 3, refusals: 1, messages: 30, lastUsedAt, lastRefusal };
  await usage.add({ minuteAt: minuteOf(lastUsedAt), keys: [counts], environments: [] });
  await usage.close();
  expect((await runKeys(['list'])).printed).toMatchObject([
    { usesOfHour: 3, refusalsOfHour: 1, lastUsedAt, lastRefusal },
    { usesOfHour: 0, refusalsOfHour: 0, lastUsedAt: null, lastRefusal: null },
  ]);
  const { results } = await runInProcess([createKeysCommand(contextOf())], ['keys', 'list', '--project', project]);
  const usedAt = new Date(lastUsedAt).toISOString();
  expect(results[0]).toContain(`last used ${usedAt}; uses in the last hour: 3, refusals: 1`);
  expect(results[1]).toContain('never used');
});

it('keys rebuild removes keys from Redis that are not in the log', async () => {
  const wanted: NewKey = { projectId: project, environmentId: project, environment: 'production', kind: 'secret' };
  const { key } = await createKey({ store: createUnloggedStore(view), prefix: KEY_PREFIX }, wanted);
  shown.push({ kind: 'secret', key });
  expect((await runKeys(['rebuild'])).printed).toEqual([{ kind: 'keys', records: expect.any(Number), removed: 1 }]);
  expect((await verdicts()).at(-1)).toBe('refused');
});

function runPartners(args: string[], overrides: Partial<KeysContext['rateLimitKeys']> = {}) {
  const ofPartners = openSources()(RATE_LIMIT_KEYS);
  const context: KeysContext = {
    ...createMemoryAccess(),
    rateLimitKeys: { ...ofPartners, ...overrides },
    projects: createMemorySources(PROJECTS),
    prefix: KEY_PREFIX,
    publish: () => Promise.reject(new Error('a local stack does not store partner keys')),
  };
  return run([createKeysCommand(context)], 'keys', ...args, '--kind', 'rate-limit');
}

const createPartnerKey = (partner: string, ...args: string[]) =>
  runPartners(['create', '--partner', partner, '--calls', '6000', ...args]);

async function verdictOf(key: string): Promise<string> {
  const view = await openRedisRecords(RATE_LIMIT_KEYS, { url: recordStores.redis.url });
  const finder = openRateLimitKeyFinder({ view, prefix: KEY_PREFIX, readEveryMs: 0 });
  try {
    const found = await finder.find(key);
    return found?.keyId ?? 'refused';
  } catch (fault) {
    return (fault as Error).name;
  } finally {
    finder.close();
    await view.close();
  }
}

it('rate limit key commands log every change with the key id and author, and never log a key itself', async () => {
  const [printed] = (await createPartnerKey('Acme', '--expires', '2999-01-31')).printed;
  expect(printed).toMatchObject({ partner: 'Acme', calls: 6000, windowS: 300, expiresAt: Date.UTC(2999, 0, 31) });
  await runPartners(['revoke', '--id', printed.keyId]);
  const records = await logged(TOPICS.rateLimitKeys.name);
  const ofKey = records.filter(({ key }) => String(key) === printed.keyId);
  const states = ofKey.map(({ value }) => rateLimitKeyCodec.decode(value!.subarray(FRAME_BYTES)));
  expect(states).toMatchObject([
    { revision: 1, revokedAt: null, changedBy: 'ada' },
    { revision: 2, revokedAt: expect.any(Number), changedBy: 'ada' },
  ]);
  expect(new Set(states.map(({ requestId }) => requestId)).size).toBe(2);
  expect(records.map(({ value }) => value!.toString('latin1')).join()).not.toContain(printed.key.slice(-36));
});

it('keys refresh replaces a rate limit key under the same id, and changes its plan only on request', async () => {
  const [first] = (await createPartnerKey('Beta', '--window-s', '60')).printed;
  const [second] = (await runPartners(['refresh', '--id', first.keyId, '--calls', '9'])).printed;
  expect(second).toMatchObject({ keyId: first.keyId, partner: 'Beta', calls: 9, windowS: 60 });
  expect([await verdictOf(first.key), await verdictOf(second.key)]).toEqual(['refused', first.keyId]);
  await runPartners(['revoke', '--id', first.keyId]);
  expect(await verdictOf(second.key)).toBe('refused');
  const repeated = await runPartners(['refresh', '--id', first.keyId]);
  expect(repeated).toMatchObject({ code: 1, printed: [], progress: expect.stringContaining('revoked') });
});

it("keys list shows a partner's rate limit keys, including expired keys, without their hashes", async () => {
  const [printed] = (await createPartnerKey('Gamma', '--expires', '2020-01-31T12:00Z')).printed;
  const listed = await runPartners(['list', '--partner', 'Gamma']);
  expect(listed.printed).toMatchObject([{ keyId: printed.keyId, state: 'expired', last4: printed.key.slice(-4) }]);
  expect(JSON.stringify(listed)).not.toMatch(new RegExp(`hash|${printed.key.slice(-36)}`));
  expect(await verdictOf(printed.key)).toBe('refused');
});

it.each([
  ['a key without a partner', ['create', '--calls', '5'], '--partner: expected'],
  ['a plan without calls', ['create', '--partner', 'P'], '--calls: expected'],
  ['a fraction of a call', ['create', '--partner', 'P', '--calls', '1.5'], 'Expected a whole number'],
  [
    'a window of a week',
    ['create', '--partner', 'P', '--calls', '5', '--window-s', '604800'],
    'Expected a number from 1 to',
  ],
  [
    'an expiry without an offset',
    ['create', '--partner', 'P', '--calls', '5', '--expires', '2027-01-31T12:00'],
    '--expires: expected',
  ],
  ['an environment', ['list', '--environment', 'production'], '--environment cannot be used with --kind rate-limit'],
  ['a refresh without a key id', ['refresh'], '--id: expected'],
])('rate limit key commands refuse %s with exit code 2 before stores are opened', async (_what, args, message) => {
  const nowhere = () => Promise.reject(new Error('opened'));
  const { code, printed, progress } = await runPartners(args, { openView: nowhere, openLog: nowhere });
  expect({ code, printed }).toEqual({ code: 2, printed: [] });
  expect(progress).toContain(message);
});

function runAll(...args: string[]) {
  const sourcesOf = openSources();
  const shared = { keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) };
  const keys = createKeysCommand({
    ...createMemoryAccess(),
    ...shared,
    signableKeys: sourcesOf(SIGNABLE_KEYS),
    prefix: KEY_PREFIX,
    kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
    publish: async () => {},
  });
  const context = {
    servedChains: () => null,
    readCode: async () => null,
    ...shared,
    collections: sourcesOf(COLLECTIONS),
  };
  return run([keys, createCollectionsCommand(context)], ...args);
}

async function writeInvalid(topic: string): Promise<void> {
  const producer = new Kafka({ brokers: [...recordStores.brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ key: 'other', value: 'no record' }] });
  await producer.disconnect();
}

const listed = async () => [
  ...(await runAll('collections', 'list')).printed,
  ...(await runAll('keys', 'list', '--kind', 'signable')).printed,
];

it('keys rebuild restores collections and signable keys in an emptied Redis', async () => {
  const contract = ['--chain', 'demo-chain', '--contract', `0x${'ab'.repeat(20)}`];
  await runAll('collections', 'link', ...contract, '--environment', 'production', '--name', 'Swords');
  await runAll('keys', 'create', '--kind', 'signable', '--environment', 'production', '--name', 'Minter');
  const before = await listed();
  expect(before).toMatchObject([{ name: 'Swords' }, { name: 'Minter' }]);
  await recordStores.redis.client.flushdb();
  const { code, printed } = await runAll('keys', 'rebuild');
  expect([code, printed]).toMatchObject([0, RECORD_KINDS.map(({ name }) => ({ kind: name, removed: 0 }))]);
  for (const kind of [COLLECTIONS, SIGNABLE_KEYS])
    expect(await recordStores.redis.client.hlen(`access:${kind.name}`)).toBe(1);
  expect(await listed()).toEqual(before);
});

it('keys rebuild does not change records whose log cannot be read, and restores all other records', async () => {
  const before = await recordStores.redis.client.hgetall('access:collections');
  await recordStores.redis.client.del('access:signable-keys');
  await writeInvalid(`${recordStores.topicPrefix}${COLLECTIONS.topic}`);
  const { code, progress } = await runAll('keys', 'rebuild');
  expect(code).toBe(1);
  expect(progress).toContain('keys: collections were not rebuilt: a record of access.collections.v1 cannot be read');
  expect(await recordStores.redis.client.hgetall('access:collections')).toEqual(before);
  expect(await recordStores.redis.client.hlen('access:signable-keys')).toBe(1);
});
