import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Producer } from '@platformatic/kafka';
import { activityCodec, frameRecord, TOPICS } from '@playline/contracts';
import type { Bench } from '../figure.ts';
import { readSchemaId } from '../prepared-records.ts';
import { BUSY, partitionOf } from './fill.ts';

/** The peak rate of a busy chain. */
export const STREAM_PER_SECOND = 200;
const SENDS_PER_SECOND = 10;

const bytesOf = (text: string, length: number) => createHash('sha256').update(text).digest().subarray(0, length);

/** Publishes new activities of the busy chain at a steady rate until closed. `close` returns their number. */
export async function openStream(bench: Bench): Promise<{ close(): Promise<number> }> {
  const topic = `${bench.topicPrefix}${TOPICS.activities.name}`;
  const schemaId = await readSchemaId(bench, topic, activityCodec.schema);
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: 'bench',
    bootstrapBrokers: bench.stores.kafka,
    acks: -1,
    idempotent: true,
  });
  const common = { topic, partition: partitionOf(BUSY), key: Buffer.from(BUSY) };
  const ended = new AbortController();
  let sent = 0;
  const send = async () => {
    const count = STREAM_PER_SECOND / SENDS_PER_SECOND;
    const messages = Array.from({ length: count }, (_, at) => ({
      ...common,
      value: frameRecord(schemaId, activityCodec.encode(createRecord(sent + at))),
    }));
    await producer.send({ messages });
    sent += count;
  };
  const startMs = performance.now();
  const run = async () => {
    for (let turn = 1; !ended.signal.aborted; turn++) {
      await send();
      const early = startMs + (turn * 1_000) / SENDS_PER_SECOND - performance.now();
      if (early > 0) await delay(early, undefined, { signal: ended.signal }).catch(() => {});
    }
  };
  const running = run();
  // `close` reports the error. Until then it must not count as an unhandled rejection.
  running.catch(() => {});
  return {
    async close() {
      ended.abort();
      await running.finally(() => producer.close());
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
