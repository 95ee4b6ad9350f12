import { randomUUID } from 'node:crypto';
import { Producer } from '@platformatic/kafka';
import { frameRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import type { Bench } from './figure.ts';
import { createMessage, toRecord } from './messages.ts';

/** About 1 MB a request. */
const RECORDS_PER_REQUEST = 1_000;

/** A record that is ready to be sent. */
export interface PreparedRecord {
  topic: string;
  key: Buffer;
  value: Buffer;
}

/** Makes `count` records as the gateway would, keys and frames included, so that sending them costs little. */
export async function prepareMessages(bench: Bench, count: number): Promise<PreparedRecord[]> {
  const topic = `${bench.topicPrefix}${TOPICS.messages.name}`;
  const schemaId = await readSchemaId(bench, topic);
  const now = new Date();
  return Array.from({ length: count }, (_, n) => {
    const record = toRecord(createMessage(n, now), bench.environmentId);
    const key = Buffer.concat([Buffer.from(bench.environmentId), record.identityKey]);
    return { topic, key, value: frameRecord(schemaId, messageRecordCodec.encode(record)) };
  });
}

/** Makes the same messages as the reference gateway publishes them: the body's own JSON under the id of their owner. */
export function prepareJson(topic: string, count: number): PreparedRecord[] {
  const now = new Date();
  return Array.from({ length: count }, (_, n) => {
    const message = createMessage(n, now);
    const key = Buffer.from(message.userId ?? message.anonymousId);
    return { topic, key, value: Buffer.from(JSON.stringify(message)) };
  });
}

/** The brokers end a transaction that is open for longer: some hundred thousand records on a busy machine. */
const TRANSACTION_MAX_MS = 180_000;

const openProducer = ({ stores }: Bench, transactionalId?: string) =>
  new Producer<Buffer, Buffer, Buffer, Buffer>({
    ...{ clientId: 'bench', bootstrapBrokers: stores.kafka, acks: -1, idempotent: true },
    ...(transactionalId !== undefined && { transactionalId, timeout: TRANSACTION_MAX_MS }),
  });

function* requestsOf(records: readonly PreparedRecord[]): Generator<PreparedRecord[]> {
  for (let first = 0; first < records.length; first += RECORDS_PER_REQUEST)
    yield records.slice(first, first + RECORDS_PER_REQUEST);
}

/** Publishes records and waits until every one is acknowledged by all in-sync replicas. */
export async function publish(bench: Bench, records: readonly PreparedRecord[]): Promise<void> {
  const producer = openProducer(bench);
  try {
    for (const messages of requestsOf(records)) await producer.send({ messages });
  } finally {
    await producer.close();
  }
}

/** Publishes records in one transaction: nobody can read one before `beforeEnd` is done, and all of them after. */
export async function publishAtOnce(
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

/** The id under which the newest schema of a topic is registered. */
export async function readSchemaId({ stores }: Bench, topic: string): Promise<number> {
  const answer = await fetch(`${stores.registry}/subjects/${topic}-value/versions/latest`);
  if (!answer.ok) throw new Error(`no schema of ${topic}: status ${answer.status}`);
  return ((await answer.json()) as { id: number }).id;
}
