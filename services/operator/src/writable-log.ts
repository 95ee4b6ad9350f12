import {
  type AtomicPublisher,
  awaitStableBounds,
  isTakenOver,
  type LogBounds,
  type LogReader,
  OpenTransactionFault,
  type TransactionRecord,
} from '@playline/stream';
import { awaitSchemaId, type Schemas } from './await-schema.ts';
import { awaitLog } from './await-store.ts';
import { UnreachableError, unconfirmed } from './command.ts';

/** What a command reads a log with. */
export interface LogSources {
  readonly openLog: () => Promise<LogReader>;
  readonly schemas: Schemas;
  /** TOPIC_PREFIX */
  readonly topicPrefix: string;
}

/** What a command reads and changes a log with. */
export interface WritableLogSources extends LogSources {
  /** Opening a transactional id fences its earlier publisher. */
  readonly openPublisher: (name: string) => Promise<AtomicPublisher>;
}

/**
 * The bounds of a topic, or of the partition of a key, after all open transactions in them have ended.
 * @throws Error when there is no topic; UnreachableError when a transaction stays open
 */
export async function readCommittedBounds(log: LogReader, topic: string, key?: Buffer): Promise<readonly LogBounds[]> {
  const bounds = await awaitStableBounds(log, topic, key).catch((fault: unknown) => {
    throw fault instanceof OpenTransactionFault ? new UnreachableError(fault.message) : fault;
  });
  if (bounds.length === 0) throw new Error(`there is no topic ${topic}: are KAFKA_BROKERS and TOPIC_PREFIX right?`);
  return bounds;
}

/** What a change says when it fails. */
export interface ChangeMessages {
  /** Another publisher of the name has taken over. */
  readonly takenOver: string;
  /** It is unknown whether the change was written. */
  readonly retry: string;
}

/** @throws Error when another publisher has taken over, and nothing was written; UnreachableError when that is unknown */
export async function publishChange(
  publisher: AtomicPublisher,
  records: readonly TransactionRecord[],
  { takenOver, retry: again }: ChangeMessages,
): Promise<void> {
  try {
    await publisher.publish(records);
  } catch (fault) {
    if (isTakenOver(fault)) throw new Error(takenOver);
    unconfirmed('it', again)(fault instanceof Error ? fault : new Error(String(fault)));
  }
}

/** A log that is open to be changed. */
export interface WritableLog {
  readonly log: LogReader;
  /** Full name on the broker. */
  readonly topic: string;
  readonly schemaId: number;
  /** Opens the publisher of a name, which fences its earlier one. @param name without TOPIC_PREFIX */
  openPublisher(name: string): Promise<AtomicPublisher>;
}

/**
 * Works on a log, and closes it with its publishers.
 * @throws UnreachableError when brokers or registry do not answer; what the work throws
 */
export async function withWritableLog<T>(
  { openLog, openPublisher, schemas, topicPrefix }: WritableLogSources,
  { name, schema }: { readonly name: string; readonly schema: string },
  work: (changed: WritableLog) => Promise<T>,
): Promise<T> {
  const topic = topicPrefix + name;
  const log = await openLog();
  const publishers: AtomicPublisher[] = [];
  try {
    await awaitLog(log);
    const schemaId = await awaitSchemaId(schemas, topic, schema);
    return await work({
      log,
      topic,
      schemaId,
      async openPublisher(own) {
        const publisher = await openPublisher(topicPrefix + own);
        publishers.push(publisher);
        return publisher;
      },
    });
  } finally {
    await Promise.all([...publishers, log].map((each) => each.close()));
  }
}
