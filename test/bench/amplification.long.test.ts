import { toPartition } from '@playline/stores';
import type { OutgoingRecord } from '@playline/stream';
import { until } from '@playline/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BATCH_HEADER_BYTES, encodeBatch, RecordSizes } from '../../packages/stream/src/kafka/producer/record-batch.ts';
import { KEY_HEADER, MESSAGES, openGateway, type TestGateway } from '../../services/gateway/src/test/open-gateway.ts';
import {
  AMPLIFICATION_MAX,
  type BatchCase,
  createHostileBatches,
  createTypicalBatches,
  postCounted,
  SMALL_MESSAGES,
} from './hostile-batches.ts';

const PARTITIONS = 6;
/** The longest environment id for which every request stays within the limit. */
const LONG_ENVIRONMENT = 'a-game-with-a-name1-production';
const now = new Date();

function batchBytesOf(records: readonly OutgoingRecord[]): number {
  const batches = Map.groupBy(records, ({ topic, key }) => {
    return `${topic} ${key === null ? 0 : toPartition(key, PARTITIONS)}`;
  });
  return [...batches.values()].reduce((sum, batch) => {
    const sizes = new RecordSizes();
    const target = Buffer.alloc(batch.reduce((bytes, record) => bytes + sizes.bytesMaxOf(record), BATCH_HEADER_BYTES));
    return sum + encodeBatch(target, 0, batch);
  }, 0);
}

async function post({ port, key }: TestGateway, { body, headers }: Pick<BatchCase, 'body' | 'headers'>) {
  return (await postCounted({ port, path: MESSAGES }, { headers: { ...headers, [KEY_HEADER]: key }, body })).bytes;
}

async function amplificationOf(gateway: TestGateway, each: Pick<BatchCase, 'body' | 'headers'>): Promise<number> {
  const { producer, rejectionProducer } = gateway;
  for (const { sent } of [producer, rejectionProducer]) sent.length = 0;
  const received = await post(gateway, each);
  const records = [producer, rejectionProducer].flatMap(({ sent }) => sent.flatMap((send) => send.records));
  return batchBytesOf(records) / received;
}

const cases = [...createTypicalBatches(now), ...createHostileBatches(now)];

it('a batch adds at most three times its own size to the log, and a typical batch at most its own size', async () => {
  const gateway = await openGateway({ environmentId: LONG_ENVIRONMENT });
  const typical = new Set(createTypicalBatches(now).map(({ name }) => name));
  for (const each of cases) {
    const amplification = await amplificationOf(gateway, each);
    expect(amplification, each.name).toBeLessThanOrEqual(typical.has(each.name) ? 1 : AMPLIFICATION_MAX);
  }
});

it('any mix of small messages adds at most three times its request size to the log', async () => {
  const gateway = await openGateway({ environmentId: LONG_ENVIRONMENT });
  const names = fc.array(fc.constantFrom(...Object.keys(SMALL_MESSAGES)), { minLength: 1, maxLength: 100 });
  await fc.assert(
    fc.asyncProperty(names, async (caseNames) => {
      const messages = caseNames.map((name) => SMALL_MESSAGES[name]!(now));
      const batch = { body: Buffer.from(JSON.stringify({ messages })), headers: {} };
      expect(await amplificationOf(gateway, batch)).toBeLessThanOrEqual(AMPLIFICATION_MAX);
    }),
    { numRuns: 50 },
  );
});

it('the in-flight metric counts record headers, but not record framing', async () => {
  for (const each of cases.filter(({ name }) => !name.includes('rejected'))) {
    const gateway = await openGateway();
    gateway.producer.mode = 'hold';
    const posting = post(gateway, each);
    const { records, done } = await until('the batch is sent', () => gateway.producer.sent[0]);
    const inFlight = Number(/^playline_gateway_in_flight_bytes\S* (\S+)$/m.exec(await gateway.metrics())?.[1]);
    const framing = records.length * (12 + BATCH_HEADER_BYTES);
    expect(inFlight).toBeLessThanOrEqual(batchBytesOf(records));
    expect(inFlight).toBeGreaterThanOrEqual(batchBytesOf(records) - framing);
    done(null);
    await posting;
  }
});
