import { setTimeout as delay } from 'node:timers/promises';
import { toPartition } from '@playline/stores';
import type { Producer, TopicMessages, Transaction } from 'kafkajs';
import type { AtomicPublisher, TransactionRecord } from '../../log.ts';
import { REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';

/** How long consumers wait for a publisher that was killed during a transaction. Transactions take milliseconds. */
const TRANSACTION_MAX_MS = 10_000;
/** Few retries, because an operator waits for the command. Unavailable brokers are reported within seconds. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 8 };
/** The error code while brokers are still completing the previous transaction. */
const CONCURRENT = 'CONCURRENT_TRANSACTIONS';
const CONCURRENT_ATTEMPTS = 100;
const CONCURRENT_WAIT_MS = 50;

export interface AtomicPublisherOptions extends Omit<BrokerTarget, 'onFault'> {
  /** Opening a publisher fences the previous publisher with the same name. */
  name: string;
  /** Awaited before the transaction is committed, for tests. */
  beforeCommit?: () => Promise<void>;
}

/** Sends a message to its `partition`, or to the partition of its key. */
const createPartitioner =
  () =>
  ({ message, partitionMetadata }: Parameters<ReturnType<import('kafkajs').ICustomPartitioner>>[0]): number => {
    if (message.partition !== undefined) return message.partition;
    return message.key == null ? 0 : toPartition(message.key as Buffer, partitionMetadata.length);
  };

/** All records of one send to the same partition form a batch, and brokers reject batches of more than 1 MiB. */
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
  return [...topics].map(([topic, topicRecords]) => ({ topic, messages: topicRecords.map(toMessage) }));
}

const isConcurrent = (error: unknown) => error instanceof Error && 'type' in error && error.type === CONCURRENT;

/** Starts a transaction and sends the records. Retries while brokers are completing the previous transaction. */
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
 * Opens a publisher. Fences the previous publisher with the same name, whose last transaction has then ended.
 * @throws Error if the brokers do not respond
 */
export async function openAtomicPublisher(options: AtomicPublisherOptions): Promise<AtomicPublisher> {
  const { Kafka, logLevel } = await import('kafkajs');
  await import('../consumer/kafkajs-overrides.ts');
  const kafka = new Kafka({
    clientId: options.name,
    brokers: [...options.brokers],
    ...toKafkajsSecurity(options.security),
    logLevel: logLevel.NOTHING,
    requestTimeout: REQUEST_TIMEOUT_MS,
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
      // Never aborts after a commit without a response, because the transaction may be committed.
      await transaction.commit();
    },
    close: () => producer.disconnect(),
  };
}
