import type { LogReader } from '@playline/stream';
import { readLetters } from '../dead-letters/letters.ts';

/** Which records of the log became dead letters. */
export interface DeadOffsets {
  has(topic: string, partition: number, offset: number): boolean;
}

/** Reads the original offsets of the dead letters of topics. Only a number for each is kept in memory. */
export async function readDeadOffsets(log: LogReader, topics: readonly string[]): Promise<DeadOffsets> {
  const offsets = new Map<string, Set<number>>();
  for (const topic of topics)
    for await (const { original } of readLetters(log, topic)) {
      const key = `${original.topic}/${original.partition}`;
      const known = offsets.get(key) ?? new Set();
      offsets.set(key, known.add(original.offset));
    }
  return { has: (topic, partition, offset) => offsets.get(`${topic}/${partition}`)?.has(offset) ?? false };
}
