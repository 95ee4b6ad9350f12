import type { Metrics } from '@playline/runtime';
import { createOpenLetters, reportOpenLetters } from '../../partitions/open-letters.ts';
import { openLogReader } from './open-log-reader.ts';

export interface LetterCountOptions {
  readonly brokers: readonly string[];
  /** Topics that the service reads; their dead letters are counted. */
  readonly topics: readonly string[];
  readonly metrics: Metrics;
}

/** Reports `stream_dead_letters_open{topic}` whenever the metrics are read; connects with the first time. */
export function openLetterCount({ brokers, topics, metrics }: LetterCountOptions): { close(): Promise<void> } {
  const log = openLogReader({ brokers, clientId: 'dead-letters' });
  reportOpenLetters(createOpenLetters(log, topics), metrics);
  return { close: () => log.close() };
}
