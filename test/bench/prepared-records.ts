import { randomUUID } from 'node:crypto';
import { Producer } from '@platformatic/kafka';
import { frameRecord, messageRecordCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import { createSchemaRegistry } from '@playline/stream/kafka';
import type { Bench } from './figure.ts';
import { createMessage, toRecord } from './messages.ts';

const RECORDS_PER_REQUEST = 1_000;

export interface PreparedRecord {
  topic: string;
  key: Buffer;
  value: Buffer;
}

export async function prepareMessages(bench: Bench, count: number): Promise<PreparedRecord[]> {
  const topic = `${bench.topicPrefix}${TOPICS.messages.name}`;
  const schemaId = await readSchemaId(bench, topic, messageRecordCodec.schema);
  const now = new Date();
  return Array.from({ length: count }, (_, n) => {
    const record = toRecord(createMessage(n, now), bench.environmentId);
    const key = Buffer.concat([Buffer.from(bench.environmentId), record.identityKey]);
    return { topic, key, value: frameRecord(schemaId, messageRecordCodec.encode(record)) };
  });
}

/** Encodes messages as the reference gateway publishes them: the client's JSON, keyed by the user's id. */
export function prepareJson(topic: string, count: number): PreparedRecord[] {
  const now = new Date();
  return Array.from({ length: count }, (_, n) => {
    const message = createMessage(n, now);
    const key = Buffer.from(message.userId ?? message.anonymousId);
    return { topic, key, value: Buffer.from(JSON.stringify(message)) };
  });
}

/** Long enough to publish several hundred thousand records on a busy machine. */
const TRANSACTION_MAX_MS = 180_000;

const openProducer = ({ stores }: Pick<Bench, 'stores'>, transactionalId?: string) =>
  new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: 'bench',
    bootstrapBrokers: stores.kafka,
    acks: -1,
    idempotent: true,
    ...(transactionalId !== undefined && { transactionalId, timeout: TRANSACTION_MAX_MS }),
  });

function* requestsOf(records: readonly PreparedRecord[]): Generator<PreparedRecord[]> {
  for (let first = 0; first < records.length; first += RECORDS_PER_REQUEST)
    yield records.slice(first, first + RECORDS_PER_REQUEST);
}

export async function publish(bench: Pick<Bench, 'stores'>, records: readonly PreparedRecord[]): Promise<void> {
  const producer = openProducer(bench);
  try {
    for (const messages of requestsOf(records)) await producer.send({ messages });
  } finally {
    await producer.close();
  }
}

// Publishes records in one transaction. Consumers see no records until `beforeEnd` resolves.
export async function publishInTransaction(
  bench: Bench,
  records: readonly PreparedRecord[],
  beforeEnd: () => Promise<void>,
): Promise<void> {
  const producer = openProducer(bench, `${bench.topicPrefix}held-${randomUUID()}`);
  try {
    const transaction = await producer.beginTransaction();
    for (const messages of requestsOf(records)) await transaction.send({ messages });
    await beforeEnd();
    await transaction.commit();
  } finally {
    await producer.close();
  }
}

export function readSchemaId({ stores }: Pick<Bench, 'stores'>, topic: string, schema: string): Promise<number> {
  return createSchemaRegistry({ url: stores.registry }).idOf(schemaSubjectOf(topic), schema);
}
