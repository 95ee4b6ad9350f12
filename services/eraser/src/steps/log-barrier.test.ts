import { deadLetterTopicOf as letterTopicOf, TOPICS } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import { expect, it } from 'vitest';

it.each(Object.values(TOPICS))('looks for dead letters of $name where the stream puts them', (topic) => {
  expect(letterTopicOf(topic).name).toBe(deadLetterTopicOf(topic.name));
});
