import { randomBytes } from 'node:crypto';
import { ACCESS_KEYS, COLLECTIONS, PROJECTS, RECORD_KINDS, SIGNABLE_KEYS } from '@playline/access-keys';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCollectionsCommand } from '../commands/collections.ts';
import { createKeysCommand } from '../commands/keys.ts';
import { createMemoryAccess } from '../test/memory-sources.ts';
import { openRecordStores, type RecordStores } from '../test/record-stores.ts';
import { runInProcess } from '../test/run-in-process.ts';
import { createRecordSources } from './record-sources.ts';

let recordStores: RecordStores;
beforeAll(async () => {
  recordStores = await openRecordStores();
});
afterAll(() => recordStores?.close());

/** Runs a command on the real stores, as one process each. */
async function run(...args: string[]) {
  const stores = recordStores.storesOn();
  const author = { changedBy: 'ada', requestId: randomBytes(4).toString('hex') };
  const sourcesOf = createRecordSources(stores, { topicPrefix: recordStores.topicPrefix, author });
  const shared = { keys: sourcesOf(ACCESS_KEYS), projects: sourcesOf(PROJECTS) };
  const commands = [
    createKeysCommand({
      ...createMemoryAccess(),
      ...shared,
      signableKeys: sourcesOf(SIGNABLE_KEYS),
      prefix: 'svcapik',
      kinds: RECORD_KINDS.map((kind) => sourcesOf(kind)),
      publish: async () => {},
    }),
    createCollectionsCommand({ servedChains: () => null, ...shared, collections: sourcesOf(COLLECTIONS) }),
  ];
  const { code, results, progress } = await runInProcess(commands, [...args, '--json']);
  return { code, made: results.map((line) => JSON.parse(line)), progress };
}

/** Writes an invalid record to a topic. */
async function spoil(topic: string): Promise<void> {
  const producer = new Kafka({ brokers: [...recordStores.brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ key: 'other', value: 'no record' }] });
  await producer.disconnect();
}

const listed = async () => [
  ...(await run('collections', 'list')).made,
  ...(await run('keys', 'list', '--kind', 'signable')).made,
];

it('collections and signable keys on Kafka and Redis are restored unchanged in an emptied Redis, with every other kind of records', async () => {
  const contract = ['--chain', 'demo-chain', '--contract', `0x${'ab'.repeat(20)}`];
  await run('collections', 'link', ...contract, '--environment', 'production', '--name', 'Swords');
  await run('keys', 'create', '--kind', 'signable', '--environment', 'production', '--name', 'Minter');
  const before = await listed();
  expect(before).toMatchObject([{ name: 'Swords' }, { name: 'Minter' }]);
  await recordStores.redis.client.flushdb();
  const { code, made } = await run('keys', 'rebuild');
  expect([code, made]).toMatchObject([0, RECORD_KINDS.map(({ name }) => ({ kind: name, removed: 0 }))]);
  for (const kind of [COLLECTIONS, SIGNABLE_KEYS])
    expect(await recordStores.redis.client.hlen(`access:${kind.name}`)).toBe(1);
  expect(await listed()).toEqual(before);
});

it('collections and signable keys on Kafka and Redis are left alone by a rebuild that cannot read their log, which reports it and restores the others', async () => {
  const before = await recordStores.redis.client.hgetall('access:collections');
  await recordStores.redis.client.del('access:signable-keys');
  await spoil(`${recordStores.topicPrefix}${COLLECTIONS.topic}`);
  const { code, progress } = await run('keys', 'rebuild');
  expect(code).toBe(1);
  expect(progress).toContain('keys: collections were not rebuilt: a record of access.collections.v1 cannot be read');
  expect(await recordStores.redis.client.hgetall('access:collections')).toEqual(before);
  expect(await recordStores.redis.client.hlen('access:signable-keys')).toBe(1);
});
