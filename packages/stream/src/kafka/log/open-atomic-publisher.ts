import { setTimeout as delay } from 'node:timers/promises';
import type { KafkaSecurity } from '@playline/runtime';
import { Kafka, logLevel, type Producer, type TopicMessages, type Transaction } from 'kafkajs';
import type { AtomicPublisher, PlacedRecord } from '../../log.ts';
import { toPartition } from '../../murmur2.ts';
import '../consumer/kafkajs-overrides.ts';
import { toKafkajsSecurity } from '../security.ts';

/**
 * A publisher that dies within a transaction holds consumers of its partitions up for this long and for the ten seconds
 * after which brokers look for such transactions, or until the next one of its name opens. A transaction takes
 * milliseconds.
 */
const TRANSACTION_MAX_MS = 10_000;
/** A command is waited for by a person: brokers that do not answer are reported within seconds. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 8 };
/** The transaction before is still being completed by the brokers. */
const CONCURRENT = 'CONCURRENT_TRANSACTIONS';
const CONCURRENT_ATTEMPTS = 100;
const CONCURRENT_WAIT_MS = 50;

export interface AtomicPublisherOptions {
  brokers: readonly string[];
  /** TLS and login; the connections are in the clear and nobody logs in without it. */
  security?: KafkaSecurity;
  /** Whoever opens the same name ends the one before. */
  name: string;
  /** Tests only: awaited when every record is sent and nothing is decided yet. */
  beforeCommit?: () => Promise<void>;
}

/** A message goes where it is told, else where its key belongs. */
const createPartitioner =
  () =>
  ({ message, partitionMetadata }: Parameters<ReturnType<import('kafkajs').ICustomPartitioner>>[0]): number => {
    if (message.partition !== undefined) return message.partition;
    return message.key == null ? 0 : toPartition(message.key as Buffer, partitionMetadata.length);
  };

/**
 * Most bytes of one send: brokers refuse a batch of more than 1 MiB, and all records of a send that go to one partition are
 * one batch.
 */
const SEND_BYTES_MAX = 900 * 1024;
/** Of a record beside its key, value and headers. */
const RECORD_OVERHEAD_BYTES = 100;

const sizeOf = ({ key, value }: PlacedRecord) => (key?.length ?? 0) + (value?.length ?? 0) + RECORD_OVERHEAD_BYTES;

/** In their order, as many at once as brokers take; a record that is larger goes alone. */
function toSends(records: readonly PlacedRecord[]): PlacedRecord[][] {
  const sends: PlacedRecord[][] = [[]];
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

function toTopicMessages(records: readonly PlacedRecord[]): TopicMessages[] {
  const topics = new Map<string, TopicMessages>();
  for (const { topic, partition, key, value, headers } of records) {
    const found = topics.get(topic) ?? { topic, messages: [] };
    found.messages.push({ key, value, headers, ...(partition === undefined ? {} : { partition }) });
    topics.set(topic, found);
  }
  return [...topics.values()];
}

const isConcurrent = (error: unknown) => error instanceof Error && 'type' in error && error.type === CONCURRENT;

/** Sends within a transaction; the brokers may still be busy with the one before. */
async function openTransaction(producer: Producer, records: readonly PlacedRecord[]): Promise<Transaction> {
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
 * Opens the publisher of a name: when this resolves, whatever an earlier one of the name had begun is either published
 * whole or undone, and the brokers refuse anything more of it.
 * @throws Error when the brokers do not answer
 */
export async function openAtomicPublisher(options: AtomicPublisherOptions): Promise<AtomicPublisher> {
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
    // Beginning is what takes the name over; nothing has been sent, so nothing is decided.
    await (await producer.transaction()).abort();
  } catch (error) {
    await producer.disconnect();
    throw error;
  }
  return {
    async publish(records) {
      const transaction = await openTransaction(producer, records);
      await options.beforeCommit?.();
      // Whether a commit without an answer took place only the log can tell: it is never undone here.
      await transaction.commit();
    },
    close: () => producer.disconnect(),
  };
}
