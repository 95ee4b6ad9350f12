import type { ReadBlocks, ReadLog } from '@playline/chain';
import type { ActivityRecord, IndexProgressRecord } from '@playline/contracts';
import { BlockSummaries, type SummaryNotice } from './block-summaries.ts';
import type { RangePlan } from './plan-range.ts';

/** The content of one transaction, before its tokens are described. */
export interface ActivityBatch {
  readonly activities: readonly ActivityRecord[];
  /** Contracts of the ERC-20 tokens among them. */
  readonly tokens: ReadonlySet<string>;
  /** What is missing in blocks that end in this batch. */
  readonly notices: readonly SummaryNotice[];
  /** How far the chain is indexed after this batch. */
  readonly reached: Pick<IndexProgressRecord, 'block' | 'hash' | 'nextLog'>;
}

export interface BatchRules {
  /** Reads whole blocks, because the logs of a block share a budget. */
  readonly readActivities: (read: ReadBlocks) => Iterable<ReadLog>;
  /** Called for each log that was not published before. */
  readonly onRead: (read: ReadLog) => void;
  /** A batch with this many records is full. Those of one log, 10,000 at most, are never divided. */
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
  read: ReadBlocks,
  { from, firstLog }: Pick<RangePlan, 'from' | 'firstLog'>,
  { readActivities, onRead, recordsMax = RECORDS_MAX, bytesMax = BYTES_MAX }: BatchRules,
): Generator<ActivityBatch> {
  const summaries = new BlockSummaries();
  let [activities, tokens, bytes]: [ActivityRecord[], Set<string>, number] = [[], new Set(), 0];
  let notices: SummaryNotice[] = [];
  let current = from;
  for (const readLog of readActivities(read)) {
    const { block, log, reading } = readLog;
    if (block.number !== current) for (const notice of summaries.take()) notices.push(notice);
    current = block.number;
    if (reading.summary !== null) summaries.note(block.number, reading.summary);
    if (block.number === from && log.logIndex < firstLog) continue;
    onRead(readLog);
    for (const record of reading.records) {
      activities.push(record);
      bytes += record.details.length + RECORD_BYTES;
    }
    for (const token of reading.tokens) tokens.add(token);
    if (activities.length < recordsMax && bytes < bytesMax) continue;
    const reached = { block: block.number, hash: toHash(block.hash), nextLog: log.logIndex + 1 };
    yield { activities, tokens, notices, reached };
    [activities, tokens, notices, bytes] = [[], new Set(), [], 0];
  }
  const last = read.blocks.at(-1)!;
  const reached = { block: last.number, hash: toHash(last.hash), nextLog: null };
  yield { activities, tokens, notices: [...notices, ...summaries.take()], reached };
}
