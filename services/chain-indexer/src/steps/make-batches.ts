import type { LogRecords, ReadBlocks } from '@playline/chain';
import type { ActivityRecord, IndexProgressRecord } from '@playline/contracts';
import type { RangePlan } from './plan-range.ts';

/** What is published in one step, before its tokens are described. */
export interface ActivityBatch {
  readonly activities: readonly ActivityRecord[];
  /** Contracts of ERC-20 tokens among them. */
  readonly tokens: ReadonlySet<string>;
  /** How far the chain is indexed with it. */
  readonly reached: Pick<IndexProgressRecord, 'block' | 'hash' | 'nextLog'>;
}

export interface BatchRules {
  readonly readActivities: (log: ReadBlocks['logs'][number], blockTimestampS: number) => LogRecords;
  /** Told of each log that is read. */
  readonly onRead: (reading: LogRecords, at: { readonly block: number; readonly log: number }) => void;
  /** A batch that has as many is full; more than a log's own are never divided. */
  readonly recordsMax?: number;
}

/** A transaction of some hundred milliseconds: readers of other chains in the same partition wait behind it. */
const RECORDS_MAX = 5_000;

const toHash = (text: string) => Buffer.from(text.slice(2), 'hex');

/** Divides what was read into batches, between logs: a block that is too large for one is gone on with in the next. */
export function* makeBatches(
  { blocks, logs }: ReadBlocks,
  { from, firstLog }: Pick<RangePlan, 'from' | 'firstLog'>,
  { readActivities, onRead, recordsMax = RECORDS_MAX }: BatchRules,
): Generator<ActivityBatch> {
  const byNumber = new Map(blocks.map((block) => [block.number, block]));
  let [activities, tokens]: [ActivityRecord[], Set<string>] = [[], new Set()];
  for (const log of logs) {
    if (log.blockNumber === from && log.logIndex < firstLog) continue;
    const block = byNumber.get(log.blockNumber)!;
    const reading = readActivities(log, block.timestampS);
    onRead(reading, { block: block.number, log: log.logIndex });
    activities.push(...reading.records);
    for (const token of reading.tokens) tokens.add(token);
    if (activities.length < recordsMax) continue;
    yield { activities, tokens, reached: { block: block.number, hash: toHash(block.hash), nextLog: log.logIndex + 1 } };
    [activities, tokens] = [[], new Set()];
  }
  const last = blocks.at(-1)!;
  yield { activities, tokens, reached: { block: last.number, hash: toHash(last.hash), nextLog: null } };
}
