import { toPartition } from '@playline/stores';
import type { ICustomPartitioner, Producer, TopicMessages, Transaction } from 'kafkajs';
import type { AtomicPublisher, TransactionRecord } from '../../log.ts';
import { REQUEST_TIMEOUT_MS } from '../protocol.ts';
import { type BrokerTarget, toKafkajsSecurity } from '../security.ts';

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

type Destination = Pick<TransactionRecord, 'topic' | 'key' | 'partition'>;

interface PartitionLeader {
  readonly partitionId: number;
  readonly leader: number;
}

/** The leader of a partition whose topic was not sent to before. */
const UNKNOWN = -2;

/** Thrown by the partitioner if a message belongs to another leader than the rest of its send. */
class LeaderMoved extends Error {}

/**
 * Selects records of one leader per send. After a failed send to several leaders, kafkajs 2.2.4 would omit partitions that
 * moved to a leader that has responded, and repeat records of a leader that has not responded yet.
 */
class LeaderSends {
  readonly #topics = new Map<string, readonly PartitionLeader[]>();
  #leader = Number.NaN;

  /** Sends a message to its `partition`, or to the partition of its key. @throws LeaderMoved */
  readonly createPartitioner =
    () =>
    ({ topic, message, partitionMetadata }: Parameters<ReturnType<ICustomPartitioner>>[0]): number => {
      this.#topics.set(topic, partitionMetadata);
      const destination = { ...message, topic } as Destination;
      if (this.#leaderOf(destination) !== this.#leader) throw new LeaderMoved();
      return this.#partitionOf(destination);
    };

  /** Calls `send` with the records of each leader. */
  async sendAll<R extends Destination>(records: readonly R[], send: (records: R[]) => Promise<unknown>): Promise<void> {
    let remaining = records;
    while (remaining.length > 0) {
      const leader = this.#leaderOf(remaining[0]!);
      this.#leader = leader;
      const group = Map.groupBy(remaining, (record) => this.#leaderOf(record) === leader);
      try {
        await send(group.get(true)!);
      } catch (error) {
        if (error instanceof LeaderMoved) continue;
        throw error;
      }
      remaining = group.get(false) ?? [];
    }
  }

  #partitionOf({ topic, key, partition }: Destination): number {
    return partition ?? (key === null ? 0 : toPartition(key, this.#topics.get(topic)?.length ?? 1));
  }

  #leaderOf(at: Destination): number {
    const partition = this.#partitionOf(at);
    return this.#topics.get(at.topic)?.find(({ partitionId }) => partitionId === partition)?.leader ?? UNKNOWN;
  }
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
