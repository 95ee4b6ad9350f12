import { type LogReaderOptions, openAdmin } from './open-admin.ts';

const TOPIC_RESOURCE = 2;
/** Source of a setting that was set on the topic, and is not a default. */
const TOPIC_CONFIG = 1;

/** Reads the settings that were set on topics, without defaults of the cluster. Missing topics are omitted. */
export async function readTopicSettings(
  options: LogReaderOptions,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
  const admin = openAdmin(options);
  try {
    const existing = new Set(await admin.listTopics());
    const resources = topics
      .filter((name) => existing.has(name))
      .map((resourceName) => ({ resourceType: TOPIC_RESOURCE, resourceName }) as const);
    if (resources.length === 0) return new Map();
    const described = await admin.describeConfigs({ resources });
    return new Map(
      described.map(({ resourceName, configs }) => {
        const set = configs.filter(({ configSource }) => configSource === TOPIC_CONFIG);
        const pairs = set.flatMap(({ name, value }) => (value === null || value === undefined ? [] : [[name, value]]));
        return [resourceName, Object.fromEntries(pairs)];
      }),
    );
  } finally {
    await admin.close();
  }
}
