import type { Cluster } from 'kafkajs';

/** Retention of a topic is changed by hand, and rarely. */
const ASK_INTERVAL_MS = 10 * 60 * 1000;
/** Kafka's number for a topic among the kinds of resources that have settings. */
const TOPIC_RESOURCE = 2;
const SETTING = 'retention.ms';

/** Members of kafkajs's broker that its types lack. */
interface SettingsBroker {
  describeConfigs(query: {
    resources: { type: number; name: string; configNames: string[] }[];
    includeSynonyms: boolean;
  }): Promise<{
    resources: { resourceName: string; configEntries: { configName: string; configValue: string | null }[] }[];
  }>;
}

/** How long the brokers keep records of some topics. */
export interface TopicRetention {
  /** Milliseconds; null while it is unknown, and for a topic whose records are kept for ever. */
  retentionMsOf(topic: string): number | null;
  /** Asks again after ten minutes or more, over the connections that the consumer already has. Never throws. */
  refresh(cluster: Pick<Cluster, 'findControllerBroker'>): Promise<void>;
}

export function createTopicRetention(topics: readonly string[]): TopicRetention {
  const known = new Map<string, number>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return {
    retentionMsOf: (topic) => known.get(topic) ?? null,
    async refresh(cluster) {
      if (performance.now() - askedAtMs < ASK_INTERVAL_MS) return;
      askedAtMs = performance.now();
      try {
        const broker = (await cluster.findControllerBroker()) as unknown as SettingsBroker;
        const resources = topics.map((name) => ({ type: TOPIC_RESOURCE, name, configNames: [SETTING] }));
        const answer = await broker.describeConfigs({ resources, includeSynonyms: false });
        for (const { resourceName, configEntries } of answer.resources) {
          const retentionMs = Number(configEntries.find(({ configName }) => configName === SETTING)?.configValue ?? -1);
          if (retentionMs >= 0) known.set(resourceName, retentionMs);
          else known.delete(resourceName);
        }
      } catch {
        // The next refresh asks again. Until then the last known value is returned.
        askedAtMs = Number.NEGATIVE_INFINITY;
      }
    },
  };
}
