import { randomBytes } from 'node:crypto';
import { Admin as OperatorAdmin } from '@platformatic/kafka';
import { identityDecisionCodec, TOPICS, type Topic } from '@playline/contracts';
import { createRegistryAdmin } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import kafkajs, { type Admin } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allTopics, applyTopics, dropTopics } from './apply.ts';
import { patchKafkaTimer } from './timer.ts';

const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;
const prefix = `test-${randomBytes(4).toString('hex')}.`;
const names = allTopics().map(({ name }) => prefix + name);

describe('applyTopics', () => {
  const stores = testStores();
  const registry = createRegistryAdmin({ url: stores.registry });
  const target = { brokers: stores.kafka, registry: stores.registry, prefix, partitions: 2 };
  let admin: Admin;

  beforeAll(async () => {
    patchKafkaTimer();
    admin = new Kafka({ clientId: 'test', brokers: stores.kafka, logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
  });
  afterAll(async () => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(prefix));
    await admin.deleteTopics({ topics });
    await admin.disconnect();
    for (const name of names) await registry.remove(`${name}-value`);
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
  const setAsOperator = async (name: string, settings: Record<string, string>) => {
    const operator = new OperatorAdmin({ clientId: 'test', bootstrapBrokers: stores.kafka });
    const configs = Object.entries(settings).map(([key, value]) => ({ name: key, configOperation: 0, value }) as const);
    await operator.incrementalAlterConfigs({ resources: [{ resourceType: 2, resourceName: name, configs }] });
    await operator.close();
    // The controller applies the settings before the broker reports them.
    await until('the broker reports the settings', async () => {
      const actual = await readSettings(name);
      return Object.entries(settings).every(([key, value]) => actual[key] === value);
    });
  };
  const countPartitions = async (name: string) =>
    (await admin.fetchTopicMetadata({ topics: [name] })).topics[0]!.partitions.length;

  it('creates all topics and registers all schemas, and changes nothing when repeated', async () => {
    const first = await applyTopics(target);
    expect(first.created.sort()).toEqual([...names].sort());
    expect(first.schemas.map(({ subject }) => subject)).toEqual(
      Object.values<Topic>(TOPICS).flatMap(({ name, schema }) => (schema === null ? [] : [`${prefix}${name}-value`])),
    );
    expect(await readSettings(prefix + TOPICS.messages.name)).toMatchObject({
      'cleanup.policy': 'delete',
      'retention.ms': String(72 * 3_600_000),
      'segment.ms': String(6 * 3_600_000),
      'max.message.bytes': String(2 * 1024 * 1024),
    });
    expect(await countPartitions(prefix + TOPICS.messages.name)).toBe(2);
    const second = await applyTopics(target);
    expect(second).toMatchObject({ created: [], changed: [], schemas: first.schemas });
    expect(second.notices).toContain('topics have one replica: if its disk fails, acknowledged records are lost');
  });

  it('corrects a concurrently created topic, and refuses a registry that lacks the schema of a topic with records', async () => {
    const ownTarget = { ...target, prefix: `test-${randomBytes(4).toString('hex')}.` };
    const name = ownTarget.prefix + TOPICS.messages.name;
    const subject = `${name}-value`;
    const producer = new Kafka({ clientId: 'test', brokers: stores.kafka, logLevel: logLevel.NOTHING }).producer();
    try {
      const configEntries = [{ name: 'retention.ms', value: '1000' }];
      const concurrentTopic = { waitForLeaders: false, topics: [{ topic: name, numPartitions: 1, configEntries }] };
      const applied = await applyTopics({ ...ownTarget, beforeChange: () => admin.createTopics(concurrentTopic) });
      expect(applied.changed).toEqual([name]);
      expect(applied.created).toHaveLength(names.length - 1);
      expect(await countPartitions(name)).toBe(2);
      await until('the topic setting is corrected', async () => (await readSettings(name))['retention.ms'] !== '1000');

      await registry.remove(subject);
      // Without records, the registry is accepted, so that an interrupted first start can be repeated.
      await applyTopics(ownTarget);
      await producer.connect();
      await producer.send({ topic: name, messages: [{ value: 'a record' }] });
      await registry.remove(subject);
      await expect(applyTopics(ownTarget)).rejects.toThrow(
        `schema registry: ${subject} does not exist, but the topic ${name} contains records`,
      );
      expect(await registry.hasSubject(subject)).toBe(false);
    } finally {
      await producer.disconnect();
      await dropTopics(ownTarget);
    }
  });

  it('adds partitions to topics that can grow, even if another deployment adds partitions concurrently, and never removes partitions', async () => {
    const grown = allTopics().filter(({ canGrow }) => canGrow === true);
    expect(grown.map(({ name }) => name)).toContain(TOPICS.messages.name);
    const concurrentPartitions = { topicPartitions: [{ topic: prefix + TOPICS.messages.name, count: 3 }] };
    const beforeChange = () => admin.createPartitions(concurrentPartitions);
    const { changed, notices } = await applyTopics({ ...target, partitions: 3, beforeChange });
    expect(changed.sort()).toEqual(grown.map(({ name }) => prefix + name).sort());
    expect(notices.at(-1)).toContain(`${prefix}${TOPICS.identityLinks.name}, `);
    expect(notices.at(-1)).toMatch(/ unchanged, because keys must remain in their partitions/);
    expect((await applyTopics({ ...target, partitions: 1 })).changed).toEqual([]);
    expect(await Promise.all(names.map(countPartitions))).toEqual(
      allTopics().map(({ canGrow }) => (canGrow === true ? 3 : 2)),
    );
  });

  it('reports why the registry does not respond', async () => {
    const refused = Object.assign(new Error(), { code: 'ECONNREFUSED' });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: refused }));
    await expect(createRegistryAdmin({ url: stores.registry, fetch }).register('any', '{}')).rejects.toThrow(
      'the schema registry does not respond (ECONNREFUSED)',
    );
  });

  describe('a changed schema', () => {
    type Field = { name: string; type: unknown; default?: unknown };
    const { fields, ...record } = JSON.parse(identityDecisionCodec.schema) as { fields: Field[] };
    const toText = (changed: Field[]) => JSON.stringify({ ...record, fields: changed });
    const added = { name: 'added', type: 'long', default: 0 };
    const registerAll = async (versions: Field[][]) => {
      const subject = `${prefix}change-${randomBytes(4).toString('hex')}-value`;
      try {
        for (const version of versions) await registry.register(subject, toText(version));
        return 'registered';
      } catch (error) {
        return (error as Error).message.replace(subject, '<subject>');
      } finally {
        await registry.remove(subject);
      }
    };

    it('is registered if the previous and the next release can read each other’s records', async () => {
      expect(await registerAll([fields, [added, ...fields], fields, [...fields, added]])).toBe('registered');
      expect(await registerAll([[added, ...fields], fields])).toBe('registered');
    });

    it.each([
      ['a new field without a default', [fields, [...fields, { name: 'added', type: 'long' }]]],
      ['a removed field without a default', [fields, fields.slice(1)]],
      ['a field with a different type', [fields, fields.map((f) => (f.name === 'step' ? { ...f, type: 'long' } : f))]],
      [
        'a removed field added again with a different type',
        [[added, ...fields], fields, [{ ...added, type: 'string', default: '' }, ...fields]],
      ],
    ])('is refused with a list of allowed changes: %s', async (_change, versions) => {
      expect(await registerAll(versions)).toMatch(
        /^schema registry: <subject>: this schema cannot be rolled out.* Add only fields with a default/,
      );
    });
  });

  it("corrects the settings it manages and keeps an operator's settings", async () => {
    const name = prefix + TOPICS.messages.name;
    await setAsOperator(name, { 'retention.ms': '1000', 'file.delete.delay.ms': '120000', 'min.insync.replicas': '3' });
    const { changed, notices } = await applyTopics(target);
    expect(changed).toEqual([name]);
    const corrected = String(72 * 3_600_000);
    await until('the retention is corrected', async () => (await readSettings(name))['retention.ms'] === corrected);
    expect(await readSettings(name)).toMatchObject({ 'file.delete.delay.ms': '120000', 'min.insync.replicas': '3' });
    expect(notices).toContain(
      `${name}: min.insync.replicas (3) exceeds the number of replicas (1): the topic accepts no records`,
    );
    await setAsOperator(name, { 'min.insync.replicas': '1' });
  });

  it('refuses a replication factor above the number of brokers', async () => {
    await expect(applyTopics({ ...target, replicationFactor: 3 })).rejects.toThrow(
      '3 replicas require 3 brokers, but the cluster has 1',
    );
  });
});
