import { RetryableFault } from '../ports.ts';
import { isSameMark, type LogMark } from './log-mark.ts';

/** A commit was rejected because the partition belongs to another member. All uncommitted work must be dropped. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/** The examined topic no longer exists. A new topic with the same name must be examined before it is read. */
export class TopicDeleted extends Error {
  override readonly name = 'TopicDeleted';
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
  /** The group's committed offset, or the start of the log if the group has no commit. */
  readonly committed: number;
  /** The commit's metadata: null if the group has no commit, empty if the commit has no metadata. */
  readonly metadata: string | null;
  /** The start of the log when the partition was assigned. */
  readonly start: number;
  /**
   * Commits in the generation of this assignment.
   * @throws Fenced if the generation has ended; any other fault can be retried
   */
  commit(offset: number, metadata: string): Promise<void>;
  /**
   * Returns the batch that contains an offset, or null if the log has no such batch.
   * @throws TopicDeleted; any other fault while no broker responds
   */
  batchAt(offset: number): Promise<LogMark | null>;
  /** Returns the current start of the log. @throws Error while no broker responds */
  firstOffset(): Promise<number>;
  /** Continues at this offset, or at the start of the log if the offset was deleted. */
  seek(offset: number): void;
  pause(): void;
  resume(): void;
}

/**
 * Returns true if the log contains exactly this batch, or null if retention deleted its offset, which proves nothing.
 * @throws RetryableFault if the brokers do not respond
 */
export async function hasBatch(log: LogPartition, mark: LogMark): Promise<boolean | null> {
  if (mark.base < log.start) return null;
  try {
    const found = await log.batchAt(mark.base);
    // Retention may have deleted the batch after the assignment.
    if (found === null) return mark.base < (await log.firstOffset()) ? null : false;
    return found.base > mark.base ? null : isSameMark(found, mark);
  } catch (cause) {
    throw new RetryableFault('The brokers did not return the last batch that was read.', { cause });
  }
}
