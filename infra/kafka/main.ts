import { applyTopics } from './apply.ts';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined || value === '') throw new Error(`${name} is not set`);
  return value;
};

/** Absent or a whole number from 1 up. */
const optionalCount = (name: string): number | undefined => {
  const value = process.env[name];
  if (value === undefined || value === '') return undefined;
  if (!/^[1-9]\d{0,4}$/.test(value)) throw new Error(`${name}: expected a whole number from 1 up`);
  return Number(value);
};

try {
  const partitions = optionalCount('TOPIC_PARTITIONS');
  const replicationFactor = optionalCount('TOPIC_REPLICATION_FACTOR');
  const minInsyncReplicas = optionalCount('TOPIC_MIN_INSYNC_REPLICAS');
  const { created, changed, schemas, notices } = await applyTopics({
    brokers: setting('KAFKA_BROKERS').split(','),
    registry: setting('SCHEMA_REGISTRY_URL'),
    prefix: process.env.TOPIC_PREFIX ?? '',
    ...(partitions === undefined ? {} : { partitions }),
    ...(replicationFactor === undefined ? {} : { replicationFactor }),
    ...(minInsyncReplicas === undefined ? {} : { minInsyncReplicas }),
  });
  console.log(`topics: ${created.length} created, ${changed.length} changed; schemas: ${schemas.length} registered`);
  for (const notice of notices) console.log(`note: ${notice}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
