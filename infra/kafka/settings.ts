import { Admin as AlteringAdmin, ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from '@platformatic/kafka';
import type { Topic } from '@playline/contracts';
import type { KafkaSecurity } from '@playline/runtime';
import type { Admin } from 'kafkajs';
import { toAlteringClient } from './client.ts';
import type { Cluster } from './cluster.ts';
import { retryTemporary } from './leaders.ts';
import { type Replication, raiseInsync, type StandingTopic } from './replication.ts';

/** Twice the 1 MiB batch limit. A record has one message of at most 32 KiB; a dead letter also has headers. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const MIN_INSYNC = 'min.insync.replicas';

/** The topic settings that this project controls, by Kafka's names. All others belong to the operator. */
export function toSettings(topic: Topic, minInsyncReplicas: number): Map<string, string> {
  return new Map([
    ['cleanup.policy', topic.cleanup],
    ...(topic.compactionLagMs === undefined ? [] : [['min.compaction.lag.ms', String(topic.compactionLagMs)] as const]),
    ['retention.ms', String(topic.retentionMs)],
    ['segment.ms', String(topic.segmentMs)],
    // A producer whose clock is wrong could have its records refused, or deleted by retention on arrival.
    ['message.timestamp.type', 'LogAppendTime'],
    ['max.message.bytes', String(MESSAGE_BYTES_MAX)],
    [MIN_INSYNC, String(minInsyncReplicas)],
  ]);
}

/** The topics to alter, and the intended settings. */
interface Target {
  readonly admin: Admin;
  readonly brokers: readonly string[];
  readonly security?: KafkaSecurity | undefined;
  readonly cluster: Cluster;
  readonly replication: Replication;
}

/**
 * Corrects every differing setting of ours, and no other.
 * @returns the changed topics, and the present replication of all
 */
export async function alterSettings(
  { admin, cluster, replication, ...connection }: Target,
  topics: readonly Topic[],
): Promise<{ changed: string[]; standing: StandingTopic[] }> {
  const actual = await readSettings(admin, topics);
  const standing: StandingTopic[] = [];
  const wrong: { name: string; settings: [string, string][] }[] = [];
  for (const topic of topics) {
    const settings = actual.get(topic.name) ?? new Map<string, string>();
    const { replicationFactor } = cluster.topics.get(topic.name) ?? replication;
    const before = { name: topic.name, replicationFactor, minInsyncReplicas: Number(settings.get(MIN_INSYNC) ?? 1) };
    const minInsyncReplicas = raiseInsync(before, replication);
    standing.push({ ...before, minInsyncReplicas });
    const differing = [...toSettings(topic, minInsyncReplicas)].filter(([key, value]) => settings.get(key) !== value);
    if (differing.length > 0) wrong.push({ name: topic.name, settings: differing });
  }
  if (wrong.length > 0) await setIncrementally(connection, wrong);
  return { changed: wrong.map(({ name }) => name), standing };
}

/** The effective settings, including those inherited from the cluster. */
async function readSettings(admin: Admin, topics: readonly Topic[]): Promise<Map<string, Map<string, string>>> {
  if (topics.length === 0) return new Map();
  const asked = topics.map(({ name }) => ({ type: ConfigResourceTypes.TOPIC, name }));
  // Any broker is asked, and one of several may not know a new topic yet.
  const { resources } = await retryTemporary(() => admin.describeConfigs({ includeSynonyms: false, resources: asked }));
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
}

/** kafkajs has only the request that replaces all settings of a topic, including those that an operator has set. */
async function setIncrementally(
  connection: Pick<Target, 'brokers' | 'security'>,
  topics: readonly { name: string; settings: [string, string][] }[],
) {
  const admin = new AlteringAdmin({ clientId: 'playline-topics', ...toAlteringClient(connection) });
  try {
    await admin.incrementalAlterConfigs({
      resources: topics.map(({ name, settings }) => ({
        resourceType: ConfigResourceTypes.TOPIC,
        resourceName: name,
        configs: settings.map(([key, value]) => ({
          name: key,
          configOperation: IncrementalAlterConfigOperationTypes.SET,
          value,
        })),
      })),
    });
  } finally {
    await admin.close();
  }
}
