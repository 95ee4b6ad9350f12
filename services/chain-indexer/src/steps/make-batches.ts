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
  /** A batch that has as many is full. Those of one log are never divided, and are 20,000 at most. */
  readonly recordsMax?: number;
  /** A batch of so many bytes, roughly, is full as well. */
  readonly bytesMax?: number;
}

/** A transaction of some hundred milliseconds: readers of other chains in the same partition wait behind it. */
const RECORDS_MAX = 5_000;
/** Sales may have 64 KiB each: 5,000 of them would take longer than brokers let a transaction be. */
const BYTES_MAX = 4 * 1024 * 1024;
/** Of a record beside its details. */
const RECORD_BYTES = 300;

const toHash = (text: string) => Buffer.from(text.slice(2), 'hex');

/** Divides what was read into batches, between logs: a block that is too large for one is gone on with in the next. */
export function* makeBatches(
  { blocks, logs }: ReadBlocks,
  { from, firstLog }: Pick<RangePlan, 'from' | 'firstLog'>,
  { readActivities, onRead, recordsMax = RECORDS_MAX, bytesMax = BYTES_MAX }: BatchRules,
): Generator<ActivityBatch> {
  const byNumber = new Map(blocks.map((block) => [block.number, block]));
  let [activities, tokens, bytes]: [ActivityRecord[], Set<string>, number] = [[], new Set(), 0];
  for (const log of logs) {
    if (log.blockNumber === from && log.logIndex < firstLog) continue;
    const block = byNumber.get(log.blockNumber)!;
    const reading = readActivities(log, block.timestampS);
    onRead(reading, { block: block.number, log: log.logIndex });
    for (const record of reading.records) {
      activities.push(record);
      bytes += record.details.length + RECORD_BYTES;
    }
    for (const token of reading.tokens) tokens.add(token);
    if (activities.length < recordsMax && bytes < bytesMax) continue;
    yield { activities, tokens, reached: { block: block.number, hash: toHash(block.hash), nextLog: log.logIndex + 1 } };
    [activities, tokens, bytes] = [[], new Set(), 0];
  }
  const last = blocks.at(-1)!;
  yield { activities, tokens, reached: { block: last.number, hash: toHash(last.hash), nextLog: null } };
}
