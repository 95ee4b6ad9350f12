/**
 * The topic beside `topic`, both by their names on the broker, that keeps its dead letters: records that could not be
 * processed, as they were.
 */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dead`;
}
