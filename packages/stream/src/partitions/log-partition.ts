import { RetryableFault } from '../ports.ts';
import { isSameMark, type LogMark } from './log-mark.ts';

/** A commit was refused because the partition belongs to another member. The uncommitted work must be dropped. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/** The examined topic is gone. Another topic may have its name, and must be examined before it is read. */
export class TopicGone extends Error {
  override readonly name = 'TopicGone';
  readonly topic: string;
  readonly partition: number;

  constructor({ topic, partition }: { topic: string; partition: number }) {
    super(`${topic}/${partition}: the topic was deleted or recreated`);
    this.topic = topic;
    this.partition = partition;
  }
}

/** A partition while it is assigned to this process. */
export interface LogPartition {
  readonly topic: string;
  readonly partition: number;
  /** The group's committed offset, or the first offset of the log when it has committed none. */
  readonly committed: number;
  /** The metadata of the commit: null when the group has committed nothing, empty when the commit has no metadata. */
  readonly metadata: string | null;
  /** The first offset of the log at the time of the assignment. */
  readonly start: number;
  /**
   * Commits in the generation of this assignment.
   * @throws Fenced when the generation has ended; any other fault may be retried
   */
  commit(offset: number, metadata: string): Promise<void>;
  /**
   * The batch that contains an offset; null when the log has no such batch.
   * @throws TopicGone; any other fault while no broker responds
   */
  batchAt(offset: number): Promise<LogMark | null>;
  /** The current first offset of the log. @throws Error while no broker responds */
  firstOffset(): Promise<number>;
  /** Continues at this offset, or at the first offset that the log still has. */
  seek(offset: number): void;
  pause(): void;
  resume(): void;
}

/**
 * Whether the log has exactly this batch. Null when retention deleted the offset, which proves nothing.
 * @throws RetryableFault when the brokers do not respond
 */
export async function hasBatch(log: LogPartition, mark: LogMark): Promise<boolean | null> {
  if (mark.base < log.start) return null;
  try {
    const found = await log.batchAt(mark.base);
    // Retention may have deleted the batch after the assignment.
    if (found === null) return mark.base < (await log.firstOffset()) ? null : false;
    return found.base > mark.base ? null : isSameMark(found, mark);
  } catch (cause) {
    throw new RetryableFault('The brokers did not respond to the request for a batch that was read.', { cause });
  }
}
