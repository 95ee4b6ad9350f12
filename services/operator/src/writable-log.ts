import {
  type AtomicPublisher,
  awaitStableBounds,
  isTakenOver,
  type LogBounds,
  type LogReader,
  OpenTransactionFault,
  type TransactionRecord,
} from '@playline/stream';
import { awaitLog, awaitSchemaId, type Schemas } from './await-store.ts';
import { throwUnconfirmed, UnreachableError } from './command.ts';

/** Dependencies of commands that read a log. */
export interface LogSources {
  readonly openLog: () => Promise<LogReader>;
  readonly schemas: Schemas;
  readonly topicPrefix: string;
}

export interface WritableLogSources extends LogSources {
  /** Fences an earlier publisher with the same transactional id. */
  readonly openPublisher: (name: string) => Promise<AtomicPublisher>;
}

/**
 * Reads the bounds of a topic, or of the partition of a key, once all open transactions have ended.
 * @throws Error when the topic does not exist; UnreachableError when a transaction remains open
 */
export async function readCommittedBounds(log: LogReader, topic: string, key?: Buffer): Promise<readonly LogBounds[]> {
  const bounds = await awaitStableBounds(log, topic, key).catch((fault: unknown) => {
    throw fault instanceof OpenTransactionFault ? new UnreachableError(fault.message) : fault;
  });
  if (bounds.length === 0) throw new Error(`Topic ${topic} does not exist: check KAFKA_BROKERS and TOPIC_PREFIX.`);
  return bounds;
}

/** @returns false if another publisher took over @throws UnreachableError when the result is unknown */
export async function publishChange(
  publisher: AtomicPublisher,
  records: readonly TransactionRecord[],
  next: string,
): Promise<boolean> {
  try {
    await publisher.publish(records);
    return true;
  } catch (fault) {
    if (isTakenOver(fault)) return false;
    return throwUnconfirmed('the change', next)(fault instanceof Error ? fault : new Error(String(fault)));
  }
}

export interface WritableLog {
  readonly log: LogReader;
  /** Topic name, including the prefix. */
  readonly topic: string;
  readonly schemaId: number;
  /** @param name without TOPIC_PREFIX */
  openPublisher(name: string): Promise<AtomicPublisher>;
}

/** Runs `work` with a log and its publishers, and then closes them. @throws UnreachableError, or an error of `work` */
export async function withWritableLog<T>(
  { openLog, openPublisher, schemas, topicPrefix }: WritableLogSources,
  { name, schema }: { readonly name: string; readonly schema: string },
  work: (writable: WritableLog) => Promise<T>,
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
      async openPublisher(id) {
        const publisher = await openPublisher(topicPrefix + id);
        publishers.push(publisher);
        return publisher;
      },
    });
  } finally {
    await Promise.all([...publishers, log].map((each) => each.close()));
  }
}
