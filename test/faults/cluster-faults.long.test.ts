import { randomBytes } from 'node:crypto';
import { Admin, ConfigResourceTypes } from '@platformatic/kafka';
import { TOPICS } from '@playline/contracts';
import { applyTopics, dropTopics } from '@playline/infra/kafka';
import { deadLetterTopicOf } from '@playline/stream';
import { createTables, until } from '@playline/testkit';
import { afterAll, describe, expect, it } from 'vitest';
import { BROKERS } from './scenarios/leaders.ts';
import { openTrials } from './trials.ts';
import { openBrokers } from './world/brokers.ts';

const TRIAL_MAX_MS = 400_000;
/** Maximum number of seeds to try until the fault takes effect. */
const SEEDS_MAX = 3;

describe('a cluster with three brokers', () => {
  const { trials, worldOf, close } = openTrials({
    seeds: SEEDS_MAX,
    outageMs: 0,
    withoutIntents: false,
    isChosen: ({ title, brokers }) => title !== undefined && brokers === BROKERS,
    world: { makeTables: createTables },
  });
  afterAll(close, TRIAL_MAX_MS);

  it.each(trials)('$title (fault $row.fault)', { timeout: TRIAL_MAX_MS }, async ({ row, trySeed }) => {
    for (let seed = 1; row.done === 0 && seed <= SEEDS_MAX; seed++) await trySeed(seed);
    expect(row).toMatchObject({ failures: [], lost: 0, duplicated: 0, done: 1 });
  });

  it('applyTopics creates topics with 3 replicas, 2 in sync, keeps safer settings and reports deviations', async () => {
    const { kafka, registry } = (await worldOf({ brokers: BROKERS })).stack.file;
    const prefix = `test-${randomBytes(4).toString('hex')}.`;
    const target = { brokers: kafka, registry, prefix, partitions: 1 };
    const name = (topic: { name: string }) => prefix + topic.name;
    const [messages, links] = [name(TOPICS.messages), name(TOPICS.identityLinks)];
    const [rejections, consents] = [name(TOPICS.rejections), name(TOPICS.consents)];
    const admin = new Admin({ clientId: 'test', bootstrapBrokers: kafka });
    const brokers = openBrokers(kafka);
    const create = (topic: string, replicas: number, inSync: number) =>
      admin.createTopics({
        topics: [topic],
        partitions: 1,
        replicas,
        configs: [{ name: 'min.insync.replicas', value: String(inSync) }],
      });
    const stateOf = async (topic: string) => {
      const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }];
      const [described] = await admin.describeConfigs({ resources });
      const inSync = described?.configs.find((config) => config.name === 'min.insync.replicas')?.value;
      const [partition] = await brokers.partitionsOf(topic, 1);
      return [partition?.replicas.length, Number(inSync)];
    };
    try {
      await create(messages, 1, 1);
      await create(links, 3, 3);
      await create(rejections, 3, 1);
      const { created, changed, notices } = await applyTopics(target);
      expect(created).toContain(consents);
      for (const topic of [consents, deadLetterTopicOf(consents), deadLetterTopicOf(messages)])
        expect(await stateOf(topic), topic).toEqual([3, 2]);
      expect(changed).toContain(rejections);
      // A broker may respond before it has received the changes.
      await until('all brokers have the new settings', async () => String(await stateOf(rejections)) === '3,2');
      expect(await stateOf(messages)).toEqual([1, 1]);
      expect(await stateOf(links)).toEqual([3, 3]);
      expect(notices).toEqual([
        expect.stringMatching(new RegExp(`^${messages}: 1 of 3 replicas; `)),
        expect.stringMatching(new RegExp(`^${links}: min.insync.replicas 3 instead of 2; unchanged`)),
      ]);
      const applied = await until('all brokers have applied the changes', async () => {
        const result = await applyTopics(target);
        return [...result.created, ...result.changed].length === 0 ? result : null;
      });
      expect(applied.notices).toEqual(notices);
    } finally {
      await dropTopics(target);
      await Promise.all([admin.close(), brokers.close()]);
    }
  });
});
