import { type DeadLetter, type Producer, RetryableFault, sendDeadLetters } from '@playline/stream';

/**
 * Creates the step that publishes dead letters of records that turned out not to be rows when their block was written.
 * They name the step `write`; those of the stream itself name `transform`.
 * @param onRefused called with their number once they are acknowledged
 */
export function createPublishLetters(producer: Producer, onRefused: (count: number) => void) {
  return async (letters: readonly DeadLetter[]): Promise<void> => {
    try {
      await sendDeadLetters(producer, letters, 'write');
    } catch (cause) {
      throw new RetryableFault('dead letters are not acknowledged', { cause });
    }
    onRefused(letters.length);
  };
}
