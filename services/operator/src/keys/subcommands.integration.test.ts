import { randomBytes } from 'node:crypto';
import {
  ACCESS_KEYS,
  type AccessKeyRecord,
  addEnvironment,
  archiveProject,
  createKey,
  createKeyVerifier,
  createProject,
  createRecordStore,
  type KeyKind,
  KeyStoreFault,
  minuteOf,
  type NewKey,
  openKeys,
  PROJECTS,
  USUAL_ENVIRONMENTS,
} from '@playline/access-keys';
import { openRedisKeyUsage, openRedisRecords, type RedisRecordView } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { accessKeyCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { openRedisDatabase, type RedisDatabase, TEST_PARTITIONS, testStores } from '@playline/testkit';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { runCommand } from '../app.ts';
import { createKeysCommand, type KeysContext } from '../commands/keys.ts';
import { createRecordSources } from '../records/record-sources.ts';
import { createMemoryAccess, createMemorySources } from '../test/memory-sources.ts';
import { createTestStores } from '../test/open-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';

const KEY_PREFIX = 'svcapik';
const target = () => {
  const { kafka, registry } = testStores();
  return { brokers: kafka, registry, prefix: topicPrefix, partitions: TEST_PARTITIONS };
};
const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
const topic = topicPrefix + TOPICS.accessKeys.name;
let redis: RedisDatabase;
let view: RedisRecordView<AccessKeyRecord>;
let project: string;
const projects = createMemorySources(PROJECTS);
const shown: { kind: KeyKind; key: string }[] = [];

beforeAll(async () => {
  await applyTopics(target());
  redis = await openRedisDatabase();
  view = await openRedisRecords(ACCESS_KEYS, { url: redis.url });
});
beforeEach(async () => {
  project = `p-${randomBytes(4).toString('hex')}`;
  const store = createRecordStore(projects, projects.author);
  await createProject({ store }, { name: project, id: project, environments: USUAL_ENVIRONMENTS });
});
afterAll(async () => {
  await view.close();
  await redis.close();
  await dropTopics(target());
});

const stores = () => createTestStores({ ...testStores(), redis: redis.url });
const author = { changedBy: 'ada', requestId: 'r-1' };
const sources = () => createRecordSources(stores(), { topicPrefix, author })(ACCESS_KEYS);

/** `between` replaces parts of the key stores, for faults after the log has the change. */
const contextOf = (between: Partial<KeysContext['keys']> = {}): KeysContext => ({
  ...createMemoryAccess(),
  keys: { ...sources(), ...between },
  kinds: [sources() as unknown as KeysContext['kinds'][number]],
  openUsage: () => openRedisKeyUsage({ url: redis.url }),
  projects,
  prefix: KEY_PREFIX,
  publish: async () => {},
});

/** Runs a key command on the real stores. */
async function run(rest: string[], between: Partial<KeysContext['keys']> = {}) {
  const context = contextOf(between);
  const ofProject = rest[0] === 'rebuild' ? [] : ['--project', project];
  const args = ['keys', ...rest, ...ofProject, '--json'];
  const { code, results, progress } = await runInProcess([createKeysCommand(context)], args);
  const made = results.map((line) => JSON.parse(line));
  for (const { kind, key } of made) if (key !== undefined) shown.push({ kind, key });
  return { code, made, progress };
}

const change = (word: string, kind: KeyKind) => [word, '--environment', 'production', '--kind', kind];

/** A view that fails before it is written. */
const dying: Partial<KeysContext['keys']> = {
  openView: async () => {
    const opened = await openRedisRecords(ACCESS_KEYS, { url: redis.url });
    return { ...opened, update: () => Promise.reject(new Error('killed')) };
  },
};

/** The answer of a service with an empty cache for every key shown so far. */
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

it('key commands write every change to the log under environment and kind, with hashes only', async () => {
  const [{ keyId, key }] = (await run(change('create', 'secret'))).made;
  await run(change('revoke', 'secret'));
  const records = await stores().readTopic(topic);
  const own = records.filter((record) => String(record.key) === `${project}-production/secret`);
  const logged = own.map(({ value }) => accessKeyCodec.decode(value!.subarray(FRAME_BYTES)));
  expect(logged).toMatchObject([
    { action: 'create', live: { keyId }, ended: [], ...author },
    { action: 'revoke', live: null, ended: [{ keyId }] },
  ]);
  const bytes = records.map(({ value }) => value!.toString('latin1')).join();
  expect(bytes).not.toContain(key.slice(key.indexOf('-') + 1));
});

it('key commands set and show the allowed origins of a publishable key, also in the log', async () => {
  const [{ keyId }] = (await run(change('create', 'publishable'))).made;
  const origins = ['origins', '--environment', 'production'];
  const list = ['https://game.example', 'http://localhost:5173'];
  expect((await run([...origins, '--origins', list.join(', ')])).made).toMatchObject([{ keyId, origins: list }]);
  expect((await run(origins)).made).toMatchObject([{ keyId, origins: list, state: 'live' }]);
  const records = await stores().readTopic(topic);
  const own = records.filter((record) => String(record.key) === `${project}-production/publishable`);
  const logged = own.map(({ value }) => accessKeyCodec.decode(value!.subarray(FRAME_BYTES)).live?.origins);
  expect(logged).toEqual([[], list]);
  await redis.client.flushdb();
  expect((await run(origins)).made).toMatchObject([{ origins: list }]);
  expect((await run([...origins, '--origins', 'any'])).made).toMatchObject([{ origins: [] }]);
  expect(await run([...origins, '--origins', 'game.example'])).toMatchObject({ code: 1, made: [] });
  expect(await run([...origins, '--kind', 'secret'])).toMatchObject({ code: 2, made: [] });
});

it('key commands give the same answer for every key after Redis was emptied and rebuilt, and refuse none in between', async () => {
  await run(change('create', 'publishable'));
  await run(change('create', 'secret'));
  await run(change('refresh', 'secret'));
  await run(change('revoke', 'publishable'));
  const before = await verdicts();
  expect(before).toContain('refused');
  await redis.client.flushdb();
  expect(new Set(await verdicts())).toEqual(new Set([KeyStoreFault.name]));
  expect((await run(['rebuild'])).code).toBe(0);
  expect(await verdicts()).toEqual(before);
});

it('key commands complete a refresh that died between Kafka and Redis, with the next command or a rebuild', async () => {
  const [first] = (await run(change('create', 'secret'))).made;
  const killed = await run(change('refresh', 'secret'), dying);
  expect(killed).toMatchObject({ code: 3, made: [], progress: expect.stringContaining('gateways apply') });
  expect((await verdicts()).at(-1)).toBe(first.keyId);
  expect((await run(['rebuild'])).code).toBe(0);
  expect((await verdicts()).at(-1)).toBe('refused');
  const [successor] = (await run(change('refresh', 'secret'))).made;
  expect((await verdicts()).at(-1)).toBe(successor.keyId);
  expect((await run(change('revoke', 'secret'), dying)).code).toBe(3);
  expect((await verdicts()).at(-1)).toBe(successor.keyId);
  expect(await run(change('refresh', 'secret'))).toMatchObject({ code: 1, made: [] });
  expect((await verdicts()).at(-1)).toBe('refused');
});

it('key commands run one after the other: of several simultaneous refreshes each ends the key before', async () => {
  await run(change('create', 'secret'));
  const results = await Promise.all(Array.from({ length: 4 }, () => run(change('refresh', 'secret'))));
  expect(results.some(({ code }) => code === 0)).toBe(true);
  const before = await verdicts();
  expect((await run(['rebuild'])).code).toBe(0);
  expect(await verdicts()).toEqual(before);
  expect((await run(['list'])).made.filter(({ state }) => state === 'live')).toHaveLength(1);
});

it('key commands print the environment id, and end its key even when its project is archived', async () => {
  const store = createRecordStore(projects, projects.author);
  await addEnvironment({ store }, { project, name: 'staging', kind: 'production' });
  const rest = ['--environment', 'staging', '--kind', 'secret'];
  expect((await run(['create', ...rest])).code).toBe(0);
  const { code, progress } = await run(['create', ...rest]);
  expect({ code, output: progress }).toEqual({
    code: 1,
    output: expect.stringContaining(`refresh --project ${project} --environment ${project}-staging --kind secret`),
  });
  await archiveProject({ store }, project);
  expect((await run(['revoke', ...rest])).code).toBe(0);
});

it('key commands list how a key is used, also for people, and report a key that was never used', async () => {
  const [used] = (await run(change('create', 'secret'))).made;
  await run(change('create', 'publishable'));
  const usage = await openRedisKeyUsage({ url: redis.url });
  const lastUsedAt = Date.now();
  const lastRefusal = { at: lastUsedAt, reason: 'VALIDATION_ERROR', traceId: 'f'.repeat(32) };
  const counts = { keyId: used.keyId, uses: 3, refusals: 1, lastUsedAt, lastRefusal };
  await usage.add({ minuteAt: minuteOf(lastUsedAt), keys: [counts], environments: [] });
  await usage.close();
  expect((await run(['list'])).made).toMatchObject([
    { usesOfHour: 3, refusalsOfHour: 1, lastUsedAt, lastRefusal },
    { usesOfHour: 0, refusalsOfHour: 0, lastUsedAt: null, lastRefusal: null },
  ]);
  const lines: string[] = [];
  const terminal = { result: (line: string) => void lines.push(line), progress: () => {}, isInteractive: false };
  await runCommand([createKeysCommand(contextOf())], ['keys', 'list', '--project', project], terminal);
  const at = new Date(lastUsedAt).toISOString();
  expect(lines[0]).toContain(`last used ${at}, 3 uses and 1 refusals in the last hour`);
  expect(lines[1]).toContain('not seen in use');
});

it('key commands remove a key from Redis that is not in the log', async () => {
  const wanted: NewKey = { projectId: project, environmentId: project, environment: 'production', kind: 'secret' };
  const { key } = await createKey({ store: createUnloggedStore(view), prefix: KEY_PREFIX }, wanted);
  shown.push({ kind: 'secret', key });
  expect((await run(['rebuild'])).made).toEqual([{ kind: 'keys', records: expect.any(Number), removed: 1 }]);
  expect((await verdicts()).at(-1)).toBe('refused');
});
