import { type Producer, type StreamRecord, sendDeadLetters } from '@playline/stream';

export type PublishDeadLetter = (record: StreamRecord, reason: string) => Promise<void>;

/**
 * Creates the step that keeps a record which turned out unreadable only when its block was written: as the stream's own
 * dead letters, with step `write` instead of `transform`. Resolves when it is acknowledged.
 */
export function createPublishDeadLetter(producer: Producer): PublishDeadLetter {
  return (record, reason) => sendDeadLetters(producer, [{ record, reason }], 'write');
}
