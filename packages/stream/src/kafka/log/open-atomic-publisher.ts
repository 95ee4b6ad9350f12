import type { Producer, TopicMessages, Transaction } from 'kafkajs';
import type { AtomicPublisher, TransactionRecord } from '../../log.ts';
import { REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';
import { LeaderSends } from './leader-sends.ts';

/** How long consumers wait for a publisher that was killed during a transaction. Transactions take milliseconds. */
const TRANSACTION_MAX_MS = 10_000;
/** Few retries, because an operator waits for the command. Unavailable brokers are reported within seconds. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 8 };

export interface AtomicPublisherOptions extends Omit<BrokerTarget, 'onFault'> {
  /** Opening a publisher fences the previous publisher with the same name. */
  name: string;
  /** Awaited before the transaction is committed, for tests. */
  beforeCommit?: () => Promise<void>;
}

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

/** Starts a transaction and sends the records. */
async function openTransaction(
  producer: Producer,
  leaders: LeaderSends,
  records: readonly TransactionRecord[],
): Promise<Transaction> {
  const transaction = await producer.transaction();
  try {
    for (const part of toSends(records))
      await leaders.sendAll(part, (send) => transaction.sendBatch({ topicMessages: toTopicMessages(send), acks: -1 }));
    return transaction;
  } catch (error) {
    await transaction.abort().catch(() => {});
    throw error;
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
  const leaders = new LeaderSends();
  const producer = kafka.producer({
    transactionalId: options.name,
    idempotent: true,
    maxInFlightRequests: 1,
    transactionTimeout: TRANSACTION_MAX_MS,
    allowAutoTopicCreation: false,
    createPartitioner: leaders.createPartitioner,
  });
  await producer.connect();
  try {
    // Starting a transaction fences the previous publisher.
    await (await producer.transaction()).abort();
  } catch (error) {
    await producer.disconnect();
    throw error;
  }
  let hasFailed = false;
  return {
    async publish(records) {
      // The next transaction would reuse sequence numbers. Brokers that stored a batch of the failed one would ignore it.
      if (hasFailed) throw new Error('The publisher has failed. Open another one.');
      hasFailed = true;
      const transaction = await openTransaction(producer, leaders, records);
      await options.beforeCommit?.();
      // Never aborts after a commit without a response, because the transaction may be committed.
      await transaction.commit();
      hasFailed = false;
    },
    close: () => producer.disconnect(),
  };
}
