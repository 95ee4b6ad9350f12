import type { LogRecords, ReadBlocks } from '@playline/chain';
import type { ActivityRecord, IndexProgressRecord } from '@playline/contracts';
import type { RangePlan } from './plan-range.ts';

/** The content of one transaction, before its tokens are described. */
export interface ActivityBatch {
  readonly activities: readonly ActivityRecord[];
  /** Contracts of the ERC-20 tokens among them. */
  readonly tokens: ReadonlySet<string>;
  /** How far the chain is indexed after this batch. */
  readonly reached: Pick<IndexProgressRecord, 'block' | 'hash' | 'nextLog'>;
}

/** A log: the number of its block, and its index in the block. */
export interface LogPlace {
  readonly block: number;
  readonly log: number;
}

export interface BatchRules {
  readonly readActivities: (log: ReadBlocks['logs'][number], blockTimestampS: number) => LogRecords;
  /** Called for each log that is read. */
  readonly onRead: (reading: LogRecords, at: LogPlace) => void;
  /** A batch with this many records is full. Those of one log, 20,000 at most, are never divided. */
  readonly recordsMax?: number;
  /** A batch of about this many bytes is full too. */
  readonly bytesMax?: number;
}

/** Keeps a transaction at some hundred milliseconds: readers of other chains in the partition wait for it. */
const RECORDS_MAX = 5_000;
/** Details of a sale may have 64 KiB: 5,000 of them would take longer than brokers allow a transaction to last. */
const BYTES_MAX = 4 * 1024 * 1024;
/** Size of a record without its details. */
const RECORD_BYTES = 300;

const toHash = (text: string) => Buffer.from(text.slice(2), 'hex');

/** Divides what was read into batches, between logs. A block that is too large for one batch goes on in the next. */
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
