import { type DeadLetter, type Producer, RetryableFault, sendDeadLetters } from '@playline/stream';
import type { WriterMetrics } from '../writer-metrics.ts';

/**
 * Creates the step that keeps records which turned out to be no row only when their block was written: as the stream's own
 * dead letters, with step `write` instead of `transform`.
 */
export function createPublishLetters(producer: Producer, metrics: Pick<WriterMetrics, 'countRefused'>) {
  return async (letters: readonly DeadLetter[]): Promise<void> => {
    try {
      await sendDeadLetters(producer, letters, 'write');
    } catch (cause) {
      throw new RetryableFault('dead letters are not acknowledged', { cause });
    }
    metrics.countRefused(letters.length);
  };
}
