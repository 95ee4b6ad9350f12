/** Saves the settings that were set on topics, and compares them. */
import { TOPICS } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import type { StoreOpeners } from '../store-openers.ts';
import type { Manifest } from './manifest.ts';

type SavedSettings = Manifest['topicSettings'];

export interface TopicSettingsSource extends Pick<StoreOpeners, 'readTopicSettings'> {
  readonly topicPrefix: string;
}

export async function readTopicSettings({ readTopicSettings: read, topicPrefix }: TopicSettingsSource) {
  const names = Object.values(TOPICS).flatMap(({ name }) => [name, deadLetterTopicOf(name)]);
  const found = await read(names.map((name) => topicPrefix + name));
  return [...found].map(([name, settings]): SavedSettings[number] => ({
    topic: name.slice(topicPrefix.length),
    settings: { ...settings },
  }));
}

/** Follow from the brokers of a cluster, and differ in a new one. */
const OF_CLUSTER = /^(min\.insync\.replicas|(leader|follower)\.replication\.throttled\.replicas)$/;

/** @returns a line for each existing topic with other settings, with the command that restores them */
export function compareTopicSettings(current: SavedSettings, saved: SavedSettings, topicPrefix: string): string[] {
  return current.flatMap(({ topic, settings: now }) => {
    const then = saved.find((each) => each.topic === topic)?.settings;
    if (then === undefined) return [];
    const names = [...new Set([...Object.keys(then), ...Object.keys(now)])].sort();
    const changed = names.filter((name) => then[name] !== now[name] && !OF_CLUSTER.test(name));
    if (changed.length === 0) return [];
    const toDifference = (name: string) => `${name} is ${now[name] ?? 'not set'} instead of ${then[name] ?? 'not set'}`;
    return [
      `topic ${topicPrefix}${topic}: ${changed.map(toDifference).join(', ')}. To restore: ` +
        toCommand(topicPrefix + topic, { changed, then }),
    ];
  });
}

function toCommand(
  topic: string,
  { changed, then }: { changed: readonly string[]; then: Readonly<Record<string, string>> },
): string {
  const added = changed.flatMap((name) => (then[name] === undefined ? [] : [`${name}=[${then[name]}]`]));
  const deleted = changed.filter((name) => then[name] === undefined);
  return [
    `kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name ${topic}`,
    ...(added.length === 0 ? [] : [`--add-config '${added.join(',')}'`]),
    ...(deleted.length === 0 ? [] : [`--delete-config ${deleted.join(',')}`]),
  ].join(' ');
}
