import { setTimeout as delay } from 'node:timers/promises';
import type { Producer, TopicMessages, Transaction } from 'kafkajs';
import type { AtomicPublisher, TransactionRecord } from '../../log.ts';
import { toPartition } from '../../murmur2.ts';
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';

/** How long consumers wait for a publisher that died during a transaction. A transaction takes milliseconds. */
const TRANSACTION_MAX_MS = 10_000;
/** An operator waits for the command, so unavailable brokers are reported within seconds. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 8 };
/** The brokers are still completing the previous transaction. */
const CONCURRENT = 'CONCURRENT_TRANSACTIONS';
const CONCURRENT_ATTEMPTS = 100;
const CONCURRENT_WAIT_MS = 50;

export interface AtomicPublisherOptions extends Omit<BrokerTarget, 'onFault'> {
  /** Opening a publisher fences the previous publisher of the same name. */
  name: string;
  /** Tests only: awaited before the transaction is committed. */
  beforeCommit?: () => Promise<void>;
}

/** A message is sent to its `partition`, or else to its key's partition. */
const createPartitioner =
  () =>
  ({ message, partitionMetadata }: Parameters<ReturnType<import('kafkajs').ICustomPartitioner>>[0]): number => {
    if (message.partition !== undefined) return message.partition;
    return message.key == null ? 0 : toPartition(message.key as Buffer, partitionMetadata.length);
  };

/** All records for one partition in a send form a batch, and brokers refuse batches of more than 1 MiB. */
const SEND_BYTES_MAX = 900 * 1024;
const RECORD_OVERHEAD_BYTES = 100;

const sizeOf = ({ key, value }: TransactionRecord) => (key?.length ?? 0) + (value?.length ?? 0) + RECORD_OVERHEAD_BYTES;

/** Groups records in order into sends that brokers accept. A larger record is sent alone. */
function toSends(records: readonly TransactionRecord[]): TransactionRecord[][] {
  const sends: TransactionRecord[][] = [[]];
  let bytes = 0;
  for (const record of records) {
    bytes += sizeOf(record);
    if (bytes > SEND_BYTES_MAX && sends.at(-1)!.length > 0) {
      sends.push([]);
      bytes = sizeOf(record);
    }
    sends.at(-1)!.push(record);
  }
  return sends;
}

function toTopicMessages(records: readonly TransactionRecord[]): TopicMessages[] {
  const toMessage = ({ partition, key, value, headers }: TransactionRecord) =>
    partition === undefined ? { key, value, headers } : { key, value, headers, partition };
  const topics = Map.groupBy(records, ({ topic }) => topic);
  return [...topics].map(([topic, own]) => ({ topic, messages: own.map(toMessage) }));
}

const isConcurrent = (error: unknown) => error instanceof Error && 'type' in error && error.type === CONCURRENT;

/** Starts a transaction and sends the records. Retries while brokers are still completing the previous transaction. */
async function openTransaction(producer: Producer, records: readonly TransactionRecord[]): Promise<Transaction> {
  for (let attempt = 1; ; attempt++) {
    const transaction = await producer.transaction();
    try {
      for (const send of toSends(records))
        await transaction.sendBatch({ topicMessages: toTopicMessages(send), acks: -1 });
      return transaction;
    } catch (error) {
      await transaction.abort().catch(() => {});
      if (!isConcurrent(error) || attempt === CONCURRENT_ATTEMPTS) throw error;
      await delay(CONCURRENT_WAIT_MS);
    }
  }
}

/**
 * Opens a publisher. The previous publisher of its name is fenced, and that publisher's last transaction has ended.
 * @throws Error when the brokers do not respond
 */
export async function openAtomicPublisher(options: AtomicPublisherOptions): Promise<AtomicPublisher> {
  const { Kafka, logLevel } = await import('kafkajs');
  await import('../consumer/kafkajs-overrides.ts');
  const kafka = new Kafka({
    clientId: options.name,
    brokers: [...options.brokers],
    ...toKafkajsSecurity(options.security),
    logLevel: logLevel.NOTHING,
    retry: RETRY,
  });
  const producer = kafka.producer({
    transactionalId: options.name,
    idempotent: true,
    maxInFlightRequests: 1,
    transactionTimeout: TRANSACTION_MAX_MS,
    allowAutoTopicCreation: false,
    createPartitioner,
  });
  await producer.connect();
  try {
    // Starting a transaction fences the previous publisher.
    await (await producer.transaction()).abort();
  } catch (error) {
    await producer.disconnect();
    throw error;
  }
  return {
    async publish(records) {
      const transaction = await openTransaction(producer, records);
      await options.beforeCommit?.();
      // Without a response the transaction may be committed, so it is never aborted here.
      await transaction.commit();
    },
    close: () => producer.disconnect(),
  };
}
