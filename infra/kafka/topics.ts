import { TOPICS, type Topic } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';

/** Every topic that must exist: those of the contract, and for each the topic of its dead letters. */
export function allTopics(): Topic[] {
  return Object.values(TOPICS).flatMap((topic: Topic) => [
    topic,
    { ...topic, name: deadLetterTopicOf(topic.name), key: 'as the source', schema: null },
  ]);
}
