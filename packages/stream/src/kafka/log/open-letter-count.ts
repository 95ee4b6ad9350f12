import type { KafkaSecurity, Metrics } from '@playline/runtime';
import { createOpenLetters, reportOpenLetters } from '../../partitions/open-letters.ts';
import { openLogReader } from './open-log-reader.ts';

export interface LetterCountOptions {
  readonly brokers: readonly string[];
  /** The same as for every client of the service. */
  readonly security?: KafkaSecurity;
  readonly onFault?: (fault: unknown) => void;
  /** Topics that the service reads; their dead letters are counted. */
  readonly topics: readonly string[];
  readonly metrics: Metrics;
}

/** Reports `stream_dead_letters_open{topic}` when metrics are read; connects the first time. */
export function openLetterCount({ topics, metrics, ...kafka }: LetterCountOptions): { close(): Promise<void> } {
  const log = openLogReader({ ...kafka, clientId: 'dead-letters' });
  reportOpenLetters(createOpenLetters(log, topics), metrics);
  return { close: () => log.close() };
}
