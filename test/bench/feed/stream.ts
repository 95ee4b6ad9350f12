import { createHash, randomUUID } from 'node:crypto';
import { Producer } from '@platformatic/kafka';
import { activityCodec, frameRecord, TOPICS } from '@playline/contracts';
import type { Bench } from '../figure.ts';
import { readSchemaId } from '../prepared-records.ts';
import { repeatEvery } from '../repeat.ts';
import { BUSY, partitionOf } from './fill.ts';

export const STREAM_PER_SECOND = 200;
const SEND_EVERY_MS = 100;

const bytesOf = (text: string, length: number) => createHash('sha256').update(text).digest().subarray(0, length);

/** Publishes new activities of the busy chain at a steady rate until closed. `close` returns their number. */
export async function openStream(bench: Bench): Promise<{ close(): Promise<number> }> {
  const topic = `${bench.topicPrefix}${TOPICS.activities.name}`;
  const schemaId = await readSchemaId(bench, topic, activityCodec.schema);
  const clientOptions = { clientId: 'bench', bootstrapBrokers: bench.stores.kafka, acks: -1, idempotent: true };
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>(clientOptions);
  const common = { topic, partition: partitionOf(BUSY), key: Buffer.from(BUSY) };
  const startMs = performance.now();
  let sent = 0;
  const sendDue = async () => {
    const due = Math.round(((performance.now() - startMs) / 1_000) * STREAM_PER_SECOND) - sent;
    const messages = Array.from({ length: due }, (_, index) => ({
      ...common,
      value: frameRecord(schemaId, activityCodec.encode(createRecord(sent + index))),
    }));
    if (due > 0) await producer.send({ messages });
    sent += due;
  };
  const sending = repeatEvery(SEND_EVERY_MS, sendDue);
  return {
    async close() {
      await sending.close().finally(() => producer.close());
      return sent;
    },
  };
}

function createRecord(number: number): Parameters<typeof activityCodec.encode>[0] {
  const contractAddress = bytesOf(`streamed contract ${number % 100}`, 20);
  const hexOf = (bytes: Buffer) => `0x${bytes.toString('hex')}`;
  return {
    chain: BUSY,
    id: Buffer.from(randomUUID().replaceAll('-', ''), 'hex'),
    type: 'transfer',
    contractAddress,
    indexedAt: Date.now() * 1_000,
    blockchainMetadata: {
      transactionHash: bytesOf(`transaction ${number}`, 32),
      blockNumber: String(20_000_000 + number),
      transactionIndex: '1',
      logIndex: '2',
    },
    details: JSON.stringify({
      from: hexOf(bytesOf(`from ${number}`, 20)),
      to: hexOf(bytesOf(`to ${number}`, 20)),
      amount: '1',
      asset: {
        contract_type: 'ERC721',
        contract_address: hexOf(contractAddress),
        token_id: String(number),
        amount: '1',
      },
    }),
    traceId: bytesOf(`trace ${number}`, 16).toString('hex'),
  };
}
