import { randomBytes } from 'node:crypto';
import { allTopics, identityDecisionCodec, TOPICS } from '@playline/contracts';
import { testStores } from '@playline/testkit';
import kafkajs, { type Admin } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyTopics } from './apply.ts';
import { registerSchema } from './registry.ts';
import { mendKafkaTimer } from './timer.ts';

const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;
const prefix = `test-${randomBytes(4).toString('hex')}.`;
const names = allTopics().map(({ name }) => prefix + name);

describe('applyTopics', () => {
  const stores = testStores();
  const target = { brokers: stores.kafka, registry: stores.registry, prefix, partitions: 2 };
  let admin: Admin;

  beforeAll(async () => {
    mendKafkaTimer();
    admin = new Kafka({ clientId: 'test', brokers: stores.kafka, logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
  });
  afterAll(async () => {
    const standing = await admin.listTopics();
    await admin.deleteTopics({ topics: standing.filter((name) => name.startsWith(prefix)) });
    await admin.disconnect();
    for (const name of names) await fetch(`${stores.registry}/subjects/${name}-value`, { method: 'DELETE' });
  });

  const readSettings = async (name: string) => {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name }],
    });
    return Object.fromEntries(
      resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
    );
  };
  const countPartitions = async (name: string) =>
    (await admin.fetchTopicMetadata({ topics: [name] })).topics[0]!.partitions.length;

  it('creates every topic with its settings and registers every schema, and changes nothing when repeated', async () => {
    const first = await applyTopics(target);
    expect(first.created.sort()).toEqual([...names].sort());
    expect(first.schemas.map(({ subject }) => subject)).toEqual(
      Object.values(TOPICS).map(({ name }) => `${prefix}${name}-value`),
    );
    expect(await readSettings(prefix + TOPICS.messages.name)).toMatchObject({
      'cleanup.policy': 'delete',
      'retention.ms': String(72 * 3_600_000),
      'segment.ms': String(6 * 3_600_000),
      'max.message.bytes': String(2 * 1024 * 1024),
    });
    expect(await countPartitions(prefix + TOPICS.messages.name)).toBe(2);
    expect(await applyTopics(target)).toEqual({ created: [], changed: [], schemas: first.schemas });
  });

  it('sets a differing setting right, adds partitions and never takes any away', async () => {
    await applyTopics(target);
    const name = prefix + TOPICS.identityLinks.name;
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name, configEntries: [{ name: 'retention.ms', value: '1000' }] }],
    });
    expect((await applyTopics(target)).changed).toEqual([name]);
    expect((await readSettings(name))['retention.ms']).toBe(String(72 * 3_600_000));

    expect((await applyTopics({ ...target, partitions: 3 })).changed.sort()).toEqual([...names].sort());
    expect(await countPartitions(name)).toBe(3);
    expect((await applyTopics({ ...target, partitions: 1 })).changed).toEqual([]);
    expect(await countPartitions(name)).toBe(3);
  });

  it('registers with compatibility BACKWARD: a version that cannot read the log is refused', async () => {
    await applyTopics(target);
    const subject = `${prefix}${TOPICS.identityDecisions.name}-value`;
    const schema = JSON.parse(identityDecisionCodec.schema) as { fields: object[] };
    const withField = (field: object) => JSON.stringify({ ...schema, fields: [...schema.fields, field] });
    await expect(
      registerSchema({ url: stores.registry }, subject, withField({ name: 'must', type: 'long' })),
    ).rejects.toThrow(subject);
    const id = await registerSchema(
      { url: stores.registry },
      subject,
      withField({ name: 'may', type: 'long', default: 0 }),
    );
    expect(id).toBeGreaterThan(0);
  });
});
