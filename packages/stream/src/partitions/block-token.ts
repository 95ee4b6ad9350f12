import type { BlockName } from '../ports.ts';

/** What rows of a block are called beside the block's own name. */
export interface TokenOptions {
  readonly block: BlockName;
  readonly table: string;
  readonly transformVersion: number;
}

/**
 * The token of the rows of a range of a block's offsets, `end` exclusive: topic, partition, offsets, time of the first
 * record, table, version of the transform and, for a log that was replaced, when it was decided to read on. Whoever writes
 * the block again goes through the same tokens.
 */
export function toBlockToken({ block, table, transformVersion }: TokenOptions, start: number, end: number): string {
  const { topic, partition, firstTimestampMs = 0, logDecidedAtMs } = block;
  const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
  return `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}|${table}|${transformVersion}${log}`;
}
