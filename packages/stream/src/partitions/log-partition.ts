import { RetryableFault } from '../ports.ts';
import { isSameMark, type LogMark } from './log-mark.ts';

/** A commit was refused because the partition belongs to another member. Drop what the commit was for. */
export class Fenced extends Error {
  override readonly name = 'Fenced';
}

/** The topic that was examined is gone; another one may have its name. Examine it before anything is read. */
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
   * Commits in the generation of this assignment.
   * @throws Fenced when that generation is over; any other fault may be retried
   */
  commit(offset: number, metadata: string): Promise<void>;
  /**
   * The batch that contains an offset; null when the log has none there.
   * @throws TopicGone; any other fault while no broker answers
   */
  batchAt(offset: number): Promise<LogMark | null>;
  /** The current first offset of the log. @throws Error while no broker answers */
  firstOffset(): Promise<number>;
  /** Continues at this offset, or at the first that the log still has. */
  seek(offset: number): void;
  pause(): void;
  resume(): void;
}

/**
 * Whether the log has exactly this batch. Null when the log has nothing there any more, which proves nothing.
 * @throws RetryableFault when the brokers do not answer
 */
export async function hasBatch(log: LogPartition, mark: LogMark): Promise<boolean | null> {
  if (mark.base < log.start) return null;
  try {
    const found = await log.batchAt(mark.base);
    // Retention continues after an assignment.
    if (found === null) return mark.base < (await log.firstOffset()) ? null : false;
    return found.base > mark.base ? null : isSameMark(found, mark);
  } catch (cause) {
    throw new RetryableFault('The brokers did not answer for a batch that was read.', { cause });
  }
}
