import { RetryableFault } from '../ports.ts';
import { isSameMark, type LogMark } from './log-mark.ts';

/**
 * A commit was refused because the partition now belongs to another member. Whatever the commit was for must be
 * dropped.
 */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/**
 * The topic that was examined is gone; another one may have its name. What is known of the log is about the old topic,
 * so it must be examined again before anything is read.
 */
export class TopicGone extends Error {
  override readonly name = 'LogGone';
  readonly topic: string;
  readonly partition: number;

  constructor({ topic, partition }: { topic: string; partition: number }) {
    super(`${topic}/${partition}: the topic that was examined is gone`);
    this.topic = topic;
    this.partition = partition;
  }
}

/** One partition, for as long as it is assigned to this process. */
export interface LogPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the first offset of the log when it has committed none. */
  readonly committed: number;
  /** What is stored beside it: null when the group has committed nothing, empty when the commit has no metadata. */
  readonly metadata: string | null;
  /** The first offset that the log had when the partition was assigned. */
  readonly start: number;
  /**
   * Commits in the generation of this assignment, whatever generation the group has by now.
   * @throws Fenced when that generation is over; any other fault may be tried again
   */
  commit(offset: number, metadata: string): Promise<void>;
  /**
   * The batch that now contains an offset; null when the log has none there.
   * @throws LogGone when its topic is gone; any other fault while no broker answers
   */
  batchAt(offset: number): Promise<LogMark | null>;
  /**
   * The first offset that the log now has.
   * @throws Error while no broker answers
   */
  firstOffset(): Promise<number>;
  /** Reads on from this offset, or from the first that the log still has. */
  seek(offset: number): void;
  /** Pauses fetching of this partition only. */
  pause(): void;
  resume(): void;
}

/**
 * Whether the log has exactly this batch. Null when nothing is at its place any more, which proves nothing.
 * @throws RetryableFault when the brokers do not say
 */
export async function hasBatch(log: LogPartition, mark: LogMark): Promise<boolean | null> {
  if (mark.base < log.start) return null;
  try {
    const found = await log.batchAt(mark.base);
    // Retention continues after an assignment. What it took meanwhile is no sign of a lost log.
    if (found === null) return mark.base < (await log.firstOffset()) ? null : false;
    return found.base > mark.base ? null : isSameMark(found, mark);
  } catch (cause) {
    throw new RetryableFault('the log was not asked for a batch that was read', { cause });
  }
}
