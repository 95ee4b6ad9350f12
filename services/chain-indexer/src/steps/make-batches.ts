import type { BlockName, BlockRange, ReadBlocks, ReadLog } from '@playline/chain';
import type { ActivityRecord, IndexProgressRecord } from '@playline/contracts';
import { BlockSummaries, type SummaryNotice } from './block-summaries.ts';

export interface RangePlan extends Omit<BlockRange, 'blocks' | 'hasBlooms'> {
  /** Logs of the first block before this one are already published. */
  readonly firstLog: number;
}

interface PlanOptions {
  readonly progress: IndexProgressRecord | null;
  /** The last final block. */
  readonly final: BlockName;
  /** First block to index when nothing is indexed yet. */
  readonly start: number;
  /** Maximum number of blocks. */
  readonly size: number;
}

const toName = ({ block, hash }: IndexProgressRecord): BlockName => ({
  number: block,
  hash: `0x${hash.toString('hex')}`,
});

/**
 * Plans the next range, of final blocks only.
 * @returns null when everything final is indexed
 */
export function planRange({ progress, final, start, size }: PlanOptions): RangePlan | null {
  const isPartial = progress !== null && progress.nextLog !== null;
  const from = progress === null ? start : isPartial ? progress.block : progress.block + 1;
  if (from > final.number) return null;
  const to = Math.min(from + size - 1, final.number);
  const after = progress === null || isPartial ? null : toName(progress);
  const holds = isPartial ? [toName(progress), final] : [final];
  return { from, to, after, holds, firstLog: progress?.nextLog ?? 0 };
}

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
