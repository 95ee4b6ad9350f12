import type { BlockName } from '../ports.ts';

/**
 * The token for the rows of a range of offsets of a block, `end` exclusive. It is made of topic, partition, offsets,
 * time of the first record, table, version of the transform and, for a replaced log, the time of the decision to read
 * on. Every owner that writes the block again uses the same tokens.
 */
export function toBlockToken(block: BlockName, table: string, start: number, end: number): string {
  const { topic, partition, firstTimestampMs = 0, transformVersion, logDecidedAtMs } = block;
  const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
  return `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}|${table}|${transformVersion}${log}`;
}
