import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, PROJECTS, RECORD_KINDS, revokeKey } from '@playline/access-keys';
import { openRedisRecords } from '@playline/access-keys/redis';
import { createUnloggedStore } from '@playline/access-keys/test';
import { type AuditEntryRecord, auditEntryCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { openRedisDatabase, type RedisDatabase, TEST_PARTITIONS, testStores } from '@playline/testkit';
import { Kafka, logLevel, type Message } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { createKeysCommand } from '../commands/keys.ts';
import { createProjectsCommand } from '../commands/projects.ts';
import { createMemoryAccess } from '../test/memory-sources.ts';
import { createTestStores } from '../test/open-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createOpenLogOfTopic, createRecordSources } from './record-sources.ts';

const { kafka: brokers, registry } = testStores();
let topicPrefix: string;
let redis: RedisDatabase;
const target = () => ({ brokers, registry, prefix: topicPrefix, partitions: TEST_PARTITIONS });

beforeAll(async () => {
  redis = await openRedisDatabase();
});
beforeEach(async () => {
  topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
  await redis.client.flushdb();
  await applyTopics(target());
  return () => dropTopics(target());
});
afterAll(() => redis.close());

const stores = () => createTestStores({ redis: redis.url, kafka: brokers, registry });

/** Runs a command on the real stores. @param answer to confirmation prompts; without it, there is no terminal */
async function run(args: readonly string[], answer?: string) {
  const author = { changedBy: 'ada', requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(stores(), { topicPrefix, author });
  const shared = { keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) };
  const keys = createKeysCommand({
    ...createMemoryAccess(),
    ...shared,
    prefix: 'svcapik',
    publish: async () => {},
    kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
    openAccessLog: createOpenLogOfTopic(stores(), topicPrefix),
  });
  const prompts: string[] = [];
  const prompt = async (text: string) => {
    prompts.push(text);
    return answer ?? '';
  };
  const { code, results, progress } = await runInProcess(
    [keys, createProjectsCommand(shared)],
    [...args],
    answer === undefined ? {} : { prompt },
  );
  return { code, results, prompts, progress };
}

/** Writes an invalid record to a topic. @returns the command arguments that select the record */
async function writeInvalid(topic: string, key: string, more: Partial<Message> = {}): Promise<string[]> {
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  const [{ partition = 0, baseOffset = '' } = {}] = await producer.send({
    topic: topicPrefix + topic,
    messages: [{ key, value: 'no record', ...more }],
  });
  await producer.disconnect();
  return ['--topic', topic, '--partition', String(partition), '--offset', baseOffset];
}

async function auditEntries(): Promise<AuditEntryRecord[]> {
  const records = await stores().readTopic(topicPrefix + TOPICS.audit.name);
  return records.map(({ value }) => auditEntryCodec.decode(value!.subarray(FRAME_BYTES)));
}

const namesOf = async () => {
  const { results } = await run(['projects', 'list', '--json']);
  return results.map((line) => JSON.parse(line).name);
};

it('an unreadable access record blocks changes to records of its kind until keys skip-record skips it', async () => {
  await run(['projects', 'create', '--id', 'game', '--name', 'Game', '--json']);
  const positionArgs = await writeInvalid(PROJECTS.topic, 'game');
  const blocked = await run(['projects', 'rename', '--project', 'game', '--name', 'Other']);
  const [, topic = '', , partition, , offset] = positionArgs;
  expect(blocked.code).not.toBe(0);
  expect(blocked.progress).toContain(`a record of ${topic} cannot be read`);
  expect(blocked.progress).toContain(
    `npm run keys -- skip-record --topic ${topic} --partition ${partition} --offset ${offset}`,
  );
  const { code, results } = await run(['keys', 'skip-record', ...positionArgs, '--yes', '--json']);
  const line = { topic, partition: Number(partition), offset: Number(offset), id: 'game', isKept: true };
  expect([code, results.map((each) => JSON.parse(each))]).toEqual([0, [{ ...line, reason: 'no schema id' }]]);
  expect(await namesOf()).toContain('Game');
  expect((await run(['projects', 'rename', '--project', 'game', '--name', 'Other'])).code).toBe(0);
  expect(await namesOf()).toContain('Other');
  await redis.client.flushdb();
  expect((await run(['keys', 'rebuild'])).code).toBe(0);
  expect(await namesOf()).toContain('Other');
  const entries = await auditEntries();
  expect(entries.filter(({ action }) => action === 'record.pass-over')).toMatchObject([
    { actor: 'ada', object: `${topic}/${partition}/${offset}`, detail: expect.stringContaining('no schema id') },
  ]);
});

it('skipping an unreadable access record with an unknown key does not create a record', async () => {
  await run(['projects', 'create', '--id', 'game', '--name', 'Game', '--json']);
  for (const partition of [0, 1]) {
    const positionArgs = await writeInvalid(PROJECTS.topic, 'unknown', { partition });
    const { code, results } = await run(['keys', 'skip-record', ...positionArgs, '--yes', '--json']);
    expect([code, JSON.parse(results[0]!)]).toMatchObject([0, { id: 'unknown', isKept: false }]);
  }
  expect(await namesOf()).toContain('Game');
  expect((await run(['keys', 'rebuild'])).code).toBe(0);
});

it('keys skip-record skips one unreadable access record at a time, and never a readable record', async () => {
  await run(['projects', 'create', '--id', 'game', '--name', 'Game', '--json']);
  const first = await writeInvalid(PROJECTS.topic, 'game');
  const second = await writeInvalid(PROJECTS.topic, 'other', { partition: 0 });
  const skipped = await run(['keys', 'skip-record', ...first, '--yes']);
  expect([skipped.code, skipped.progress]).toEqual([1, expect.stringContaining(second.join(' '))]);
  expect((await run(['keys', 'skip-record', ...second, '--yes'])).code).toBe(0);
  for (const positionArgs of [first, second])
    expect(await run(['keys', 'skip-record', ...positionArgs, '--yes'])).toMatchObject({
      code: 1,
      progress: expect.stringContaining('nothing to skip'),
    });
  const [, , , partition = '', , offset = ''] = first;
  const readableArgs = ['--topic', PROJECTS.topic, '--partition', partition, '--offset', String(Number(offset) - 1)];
  await run(['projects', 'create', '--id', 'third', '--name', 'Third', '--json']);
  const result = await run(['keys', 'skip-record', ...readableArgs, '--yes']);
  expect([result.code, result.progress]).toEqual([1, expect.stringMatching(/readable|no record|nothing to skip/)]);
  expect(await namesOf()).toEqual(expect.arrayContaining(['Game', 'Third']));
});

it('keys skip-record skips an unreadable access record only after confirmation', async () => {
  const positionArgs = await writeInvalid(PROJECTS.topic, 'unknown');
  const refused = await run(['keys', 'skip-record', ...positionArgs], 'no');
  expect([refused.code, refused.prompts[0]]).toEqual([1, expect.stringContaining('"unknown" does not exist')]);
  expect((await run(['keys', 'skip-record', ...positionArgs])).code).toBe(2);
  expect(await auditEntries()).toEqual([]);
  expect((await run(['keys', 'rebuild'])).code).toBe(1);
  expect((await run(['keys', 'skip-record', ...positionArgs], 'yes')).code).toBe(0);
  expect((await run(['keys', 'rebuild'])).code).toBe(0);
});

it('the previous record of a key applies again after an unreadable access record is skipped', async () => {
  await run(['projects', 'create', '--id', 'game', '--name', 'Game', '--json']);
  const ofGame = ['--project', 'game', '--environment', 'production', '--kind', 'secret'];
  await run(['keys', 'create', ...ofGame, '--json']);
  await run(['keys', 'refresh', ...ofGame]);
  const listed = async () => {
    const { results } = await run(['keys', 'list', '--project', 'game', '--json']);
    return results.map((line) => [JSON.parse(line).keyId, JSON.parse(line).state]);
  };
  const before = await listed();
  expect(before.map(([, state]) => state)).toEqual(['ended', 'live']);
  const positionArgs = await writeInvalid(ACCESS_KEYS.topic, 'game-production/secret');
  const rebuilt = await run(['keys', 'rebuild']);
  expect([rebuilt.code, rebuilt.progress]).toEqual([
    1,
    expect.stringContaining(`a record of ${positionArgs[1]} cannot be`),
  ]);
  expect((await run(['keys', 'skip-record', ...positionArgs, '--yes'])).code).toBe(0);
  await redis.client.flushdb();
  expect((await run(['keys', 'rebuild'])).code).toBe(0);
  expect(await listed()).toEqual(before);
});

it('a key that was revoked only in Redis remains revoked after an unreadable access record is skipped', async () => {
  await run(['projects', 'create', '--id', 'game', '--name', 'Game', '--json']);
  const ofGame = ['--project', 'game', '--environment', 'production', '--kind', 'secret'];
  await run(['keys', 'create', ...ofGame, '--json']);
  const view = await openRedisRecords(ACCESS_KEYS, { url: redis.url });
  onTestFinished(() => view.close());
  // The process that wrote the unreadable record has also revoked the key in Redis.
  await revokeKey({ store: createUnloggedStore(view) }, { environmentId: 'game-production', kind: 'secret' });
  const positionArgs = await writeInvalid(ACCESS_KEYS.topic, 'game-production/secret');
  const { code, results } = await run(['keys', 'skip-record', ...positionArgs, '--yes', '--json']);
  expect([code, JSON.parse(results[0]!)]).toMatchObject([0, { id: 'game-production/secret', isKept: true }]);
  await redis.client.flushdb();
  expect((await run(['keys', 'rebuild'])).code).toBe(0);
  expect((await view.readSince(null)).records).toMatchObject([{ live: null, ended: [{}] }]);
});

it('keys skip-record fails for an offset without a record', async () => {
  const positionArgs = ['--topic', PROJECTS.topic, '--partition', '0', '--offset', '0'];
  expect((await run(['keys', 'skip-record', ...positionArgs.slice(0, 4), '--yes'])).code).toBe(2);
  expect(await run(['keys', 'skip-record', ...positionArgs, '--yes'])).toMatchObject({
    code: 1,
    progress: expect.stringContaining('this offset has no record'),
  });
});
