// Creates topics and schemas in the cluster configured by environment variables.
import { kafkaSettings, parseConfig, registrySettings, toKafka, toRegistry } from '@playline/runtime';
import { explainConnection } from '@playline/stores';
import { z } from 'zod';
import { applyTopics } from './apply.ts';

const optionalCount = (name: string): number | undefined => {
  const value = process.env[name];
  if (value === undefined || value === '') return undefined;
  if (!/^[1-9]\d{0,4}$/.test(value)) throw new Error(`${name}: must be a positive integer`);
  return Number(value);
};

try {
  const partitions = optionalCount('TOPIC_PARTITIONS');
  const replicationFactor = optionalCount('TOPIC_REPLICATION_FACTOR');
  const minInsyncReplicas = optionalCount('TOPIC_MIN_INSYNC_REPLICAS');
  const config = parseConfig(z.object({ ...kafkaSettings, ...registrySettings }), process.env);
  const { url: registry, fetch } = toRegistry(config);
  const { created, changed, schemas, notices } = await applyTopics({
    ...toKafka(config),
    registry,
    fetch,
    prefix: process.env.TOPIC_PREFIX ?? '',
    ...(partitions === undefined ? {} : { partitions }),
    ...(replicationFactor === undefined ? {} : { replicationFactor }),
    ...(minInsyncReplicas === undefined ? {} : { minInsyncReplicas }),
  });
  console.log(`topics: ${created.length} created, ${changed.length} changed; schemas: ${schemas.length} registered`);
  for (const notice of notices) console.log(`note: ${notice}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  for (const store of ['Kafka', 'the schema registry'] as const) {
    const { message: explanation, isRefusal } = explainConnection(store, error);
    if (isRefusal) console.error(explanation);
  }
  process.exitCode = 1;
}
