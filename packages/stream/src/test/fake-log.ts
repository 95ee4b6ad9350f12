/** Fakes for unit tests of partition workers. */
import { createLogger, type Logger } from '@playline/runtime';
import type { LogPartition } from '../partitions/log-partition.ts';
import type { StreamRecord } from '../ports.ts';

export const NO_WAITS = { attempt: { minMs: 0, maxMs: 0 }, pause: { minMs: 0, maxMs: 0 } };

export function fakeLog(overrides: Partial<LogPartition> = {}): LogPartition {
  return {
    topic: 'topic',
    partition: 0,
    committed: 0,
    metadata: null,
    start: 0,
    commit: async () => {},
    batchAt: async () => null,
    firstOffset: async () => 0,
    seek() {},
    pause() {},
    resume() {},
    ...overrides,
  };
}

/** Creates records in one partition from an offset on, one millisecond apart. */
export function toRecords(texts: readonly string[], from = 0): StreamRecord[] {
  return texts.map((text, i) => ({
    topic: 'topic',
    partition: 0,
    offset: from + i,
    timestampMs: 1_000 + from + i,
    key: null,
    value: Buffer.from(text),
    headers: {},
  }));
}

export function captureLogs(): { logger: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { logger: createLogger({ service: 'test', level: 'warn' }, { write }), lines };
}
