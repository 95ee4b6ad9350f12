import {
  type AtomicPublisher,
  awaitDecided,
  isTakenOver,
  type LogBounds,
  type LogReader,
  OpenTransactionFault,
  type PlacedRecord,
} from '@playline/stream';
import type { Schemas } from './await-schema.ts';
import { UnreachableError } from './command.ts';

/** What a command reads a log with. */
export interface LogSources {
  readonly openLog: () => LogReader;
  readonly schemas: Schemas;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

/** What a command reads and changes a log with. */
export interface ChangedLogSources extends LogSources {
  /** Opening a transactional id fences its earlier publisher. */
  readonly openPublisher: (name: string) => Promise<AtomicPublisher>;
}

/**
 * The bounds of a topic, or of the partition of a key, after all open transactions in them have ended.
 * @throws Error when there is no topic; UnreachableError when a transaction stays open
 */
export async function readDecidedBounds(log: LogReader, topic: string, key?: Buffer): Promise<readonly LogBounds[]> {
  const bounds = await awaitDecided(log, topic, key).catch((fault: unknown) => {
    throw fault instanceof OpenTransactionFault ? new UnreachableError(fault.message) : fault;
  });
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}: are KAFKA_BROKERS and TOPIC_PREFIX right?`);
  return bounds;
}

/** What a change says when it fails. */
export interface ChangeWords {
  /** Another publisher of the name has taken over. */
  readonly takenOver: string;
  /** It is unknown whether the change was written. */
  readonly again: string;
}

/** @throws Error when another publisher has taken over, and nothing was written; UnreachableError when that is unknown */
export async function publishChange(
  publisher: AtomicPublisher,
  records: readonly PlacedRecord[],
  { takenOver, again }: ChangeWords,
): Promise<void> {
  try {
    await publisher.publish(records);
  } catch (fault) {
    if (isTakenOver(fault)) throw new Error(takenOver);
    const words = fault instanceof Error ? fault.message : String(fault);
    throw new UnreachableError(`Kafka did not confirm it (${words}): ${again}`);
  }
}
