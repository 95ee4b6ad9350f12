import { randomBytes } from 'node:crypto';
import { createRecordReader, erasureRequestCodec, TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { createIdentityKeyer } from '@playline/people';
import { openRedisPeople } from '@playline/people/redis';
import { createSchemaRegistry, openLogReader, openProducer } from '@playline/stream/kafka';
import { openRedisDatabase, testStores, until } from '@playline/testkit';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { createMemoryReads } from '../test/memory-reads.ts';
import { openPortal } from '../test/open-portal.ts';
import { createPortalPeople } from './people.ts';

const topicPrefix = `test-${randomBytes(4).toString('hex')}.`;
const { kafka: brokers, registry } = testStores();
const keyOf = createIdentityKeyer(Buffer.alloc(32, 5));
afterAll(() => dropTopics({ brokers, registry, prefix: topicPrefix }));

const toStep = (aKey: Buffer, bKey: Buffer) =>
  ({ link: 'identify', blocked: false, otherKeys: [], aKey, aKind: 'anonymous', bKey, bKind: 'steam' }) as const;

async function readRequests(log: ReturnType<typeof openLogReader>, schemas: ReturnType<typeof createSchemaRegistry>) {
  const topic = topicPrefix + TOPICS.erasures.name;
  const read = createRecordReader({ schemaOf: schemas.schemaOf, createReader: erasureRequestCodec.decoderOf });
  const requests: ReturnType<typeof erasureRequestCodec.decode>[] = [];
  for (const { partition, start, end } of await log.bounds(topic))
    for await (const { value } of log.read({ topic, partition, start, end })) {
      const decoded = await read(value);
      if (decoded.kind === 'record') requests.push(decoded.record);
    }
  return requests;
}

it('the People page finds linked identities in Redis, and an erasure request creates a permanent hold', async () => {
  const redis = await openRedisDatabase();
  await applyTopics({ brokers, registry, prefix: topicPrefix, partitions: 2 });
  const graph = await openRedisPeople({ url: redis.url, linkTopic: 'links' });
  const producer = await openProducer({ brokers, clientId: 'test' });
  const log = openLogReader({ brokers, clientId: 'test' });
  const schemas = createSchemaRegistry({ url: registry });
  const people = createPortalPeople({
    people: graph,
    keyOf,
    producer,
    registry: schemas,
    topicPrefix,
    clockSkewMs: 2_000,
    onFault: (fault) => expect.fail(String(fault)),
  });
  const portal = await openPortal({ people, reads: createMemoryReads() });
  onTestFinished(async () => {
    await portal.close();
    await Promise.all([producer.close(), log.close(), graph.close()]);
    await redis.close();
  });

  await graph.rebuild.mintEpoch();
  const project = await portal.addProject('Game');
  const { id: environmentId } = project.environments.find(({ name }) => name === 'development')!;
  const [anonymous, user] = [keyOf(environmentId, 'anonymous', 'visitor'), keyOf(environmentId, 'steam', 'gamer')];
  const steps = [toStep(anonymous, user)] as const;
  const fact = { environmentId, offset: 0, receivedAt: 1_000, eventTime: 1_000, steps };
  await graph.graph.apply({ generation: 0, partition: 0, after: -1, through: 0, facts: [fact] });

  const browser = await portal.signIn({ project, role: 'owner' });
  const path = `/projects/${project.id}/environments/development/people`;
  const found = await browser.submit(path, 'search', { kind: 'anonymous', id: 'visitor' });
  const personPath = found.headers.get('location')!;
  const { text: person } = await browser.get(personPath);
  for (const key of [anonymous, user]) expect(person).toContain(key.toString('hex'));
  const { text: confirmation } = await browser.get(`${personPath}&confirm=erase`);
  const { fields } = browser.formOf(confirmation, 'erase')!;
  fields.set('confirm', 'visitor');
  const { headers } = await browser.post(path, fields);

  const requests = await readRequests(log, schemas);
  expect(requests).toMatchObject([{ environmentId, subjectKeys: [anonymous], memberKeys: [user] }]);
  const { erasureId, cutoffAt } = requests[0]!;
  expect(headers.get('location')!.replaceAll('-', '')).toContain(erasureId.toString('hex'));
  await until('the hold is permanent', async () => {
    const [hold] = await graph.guards.listHolds(environmentId);
    return hold?.lapsesAtMs === null && hold.cutoffMs === cutoffAt;
  });
});
