import type { Metrics } from '@playline/runtime';
import { createOpenLetters, reportOpenLetters } from '../../partitions/open-letters.ts';
import type { BrokerTarget } from '../security.ts';
import { openLogReader } from './open-log-reader.ts';

export interface LetterCountOptions extends BrokerTarget {
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
