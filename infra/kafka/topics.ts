import { TOPICS, type Topic } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';

/** The topics of the contract, and the dead-letter topic of each. */
export function allTopics(): Topic[] {
  return Object.values(TOPICS).flatMap((topic: Topic) => [
    topic,
    { ...topic, name: deadLetterTopicOf(topic.name), key: 'as the source', schema: null },
  ]);
}
