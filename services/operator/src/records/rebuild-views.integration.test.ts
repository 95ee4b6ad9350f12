import { randomBytes } from 'node:crypto';
import { COLLECTIONS, PROJECTS, RECORD_KINDS, SIGNABLE_KEYS } from '@playline/access-keys';
import { createMemoryKeyLog } from '@playline/access-keys/memory';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { openRedisDatabase, type RedisDatabase, testStores } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../app.ts';
import { createCollectionsCommand } from '../commands/collections.ts';
import { createKeysCommand } from '../commands/keys.ts';
import { createMemoryAccess } from '../test/memory-sources.ts';
import { createTestStores } from '../test/open-stores.ts';
import { createRecordSources } from './record-sources.ts';

const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
const { kafka: brokers, registry } = testStores();
const target = { brokers, registry, prefix: topicPrefix };
let redis: RedisDatabase;

beforeAll(async () => {
  await applyTopics(target);
  redis = await openRedisDatabase();
});
afterAll(async () => {
  await redis.close();
  await dropTopics(target);
});

/** Runs a command on the real stores, as one process each. */
async function run(...words: string[]) {
  const stores = createTestStores({ redis: redis.url, kafka: brokers, registry });
  const author = { changedBy: 'ada', requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(stores, { topicPrefix, author });
  const shared = {
    openView: stores.openKeyView,
    openLog: async () => ({ ...createMemoryKeyLog(), close: async () => {} }),
    projects: sourcesOf(PROJECTS),
  };
  const commands = [
    createKeysCommand({
      ...{ ...shared, ...createMemoryAccess(), signableKeys: sourcesOf(SIGNABLE_KEYS), prefix: 'svcapik' },
      kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
      publish: async () => {},
    }),
    createCollectionsCommand({ ...shared, collections: sourcesOf(COLLECTIONS) }),
  ];
  const [results, progress]: [string[], string[]] = [[], []];
  const code = await runCommand(commands, [...words, '--json'], {
    result: (line) => void results.push(line),
    progress: (line) => void progress.push(line),
    isInteractive: false,
  });
  return { code, made: results.map((line) => JSON.parse(line)), progress: progress.join('\n') };
}

/** Writes an invalid record to a topic. */
async function spoil(topic: string): Promise<void> {
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ key: 'somebody', value: 'no record' }] });
  await producer.disconnect();
}

const listed = async () => [
  ...(await run('collections', 'list')).made,
  ...(await run('keys', 'list', '--kind', 'signable')).made,
];

describe('collections and signable keys on Kafka and Redis', () => {
  it('are restored unchanged in an emptied Redis, with every other kind of records', async () => {
    const contract = ['--chain', 'demo-chain', '--contract', `0x${'ab'.repeat(20)}`];
    await run('collections', 'link', ...contract, '--environment', 'production', '--name', 'Swords');
    await run('keys', 'create', '--kind', 'signable', '--environment', 'production', '--name', 'Minter');
    const before = await listed();
    expect(before).toMatchObject([{ name: 'Swords' }, { name: 'Minter' }]);
    await redis.client.flushdb();
    const { code, made } = await run('keys', 'rebuild');
    expect([code, made.slice(1)]).toMatchObject([0, RECORD_KINDS.map(({ name }) => ({ kind: name, removed: 0 }))]);
    for (const kind of [COLLECTIONS, SIGNABLE_KEYS]) expect(await redis.client.hlen(`access:${kind.name}`)).toBe(1);
    expect(await listed()).toEqual(before);
  });

  it('are left alone by a rebuild that cannot read their log, which says so and restores the others', async () => {
    const before = await redis.client.hgetall('access:collections');
    await redis.client.del('access:signable-keys');
    await spoil(`${topicPrefix}${COLLECTIONS.topic}`);
    const { code, progress } = await run('keys', 'rebuild');
    expect(code).toBe(1);
    expect(progress).toContain('keys: collections were not rebuilt: a record of access.collections.v1 cannot be read');
    expect(await redis.client.hgetall('access:collections')).toEqual(before);
    expect(await redis.client.hlen('access:signable-keys')).toBe(1);
  });
});
