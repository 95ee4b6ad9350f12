import { FRAME_BYTES, type RejectionRecord, rejectionCodec, TOPICS } from '@playline/contracts';
import { openRecordConsumer } from '@playline/stream/kafka';
import { testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { message } from './test/open-gateway.ts';
import { type GatewayProcess, openProcess, openRealStores, type RealStores } from './test/open-process.ts';

let stores: RealStores;
let topic: string;
let gateway: GatewayProcess | undefined;

beforeAll(async () => {
  stores = await openRealStores();
  topic = stores.topicPrefix + TOPICS.rejections.name;
});
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});
afterAll(() => stores.close());

const openReady = async () => {
  const opened = await openProcess(stores.topicPrefix);
  gateway = opened;
  await until('the gateway is ready', async () => (await fetch(`${opened.adminUrl}/readyz`)).ok);
  return opened;
};
const readMetrics = async ({ adminUrl }: GatewayProcess) => (await fetch(`${adminUrl}/metrics`)).text();
const post = ({ post: send }: GatewayProcess) =>
  send(stores.key, { messages: [message(), message({ type: 'jump', surface: 'unreal' })] });

it('the gateway logs all rejections, including those that occur just before SIGTERM', async () => {
  const opened = await openReady();
  const reported: RejectionRecord[] = [];
  const consumer = await openRecordConsumer({
    brokers: testStores().kafka,
    groupId: `${stores.topicPrefix}rejections`,
    topics: [topic],
    sessionTimeoutMs: 10_000,
    onBatch: async (records) => {
      for (const { value } of records) reported.push(rejectionCodec.decode(value!.subarray(FRAME_BYTES)));
    },
  });
  try {
    // Rejections are dropped until the registry has returned their schema id. Readiness does not depend on this id.
    await until('a rejection is on the log', async () => (await post(opened)).ok && reported.length > 0);
    const response = await post(opened);
    expect(await opened.close()).toBe(0);
    const traceId = response.headers.get('x-trace-id');
    const record = await until('the last rejection is on the log', () =>
      reported.find((sent) => sent.traceId === traceId),
    );
    expect(record).toMatchObject({
      environmentId: stores.owner.environmentId,
      code: 'UNSUPPORTED_TYPE',
      field: 'type',
      surface: 'unreal',
    });
  } finally {
    await consumer.close();
  }
});

it('the gateway still accepts messages after the rejection topic was deleted', async () => {
  const admin = new Kafka({ clientId: 'test', brokers: testStores().kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
  const opened = await openReady();
  await until('a rejection is dropped', async () => {
    expect((await post(opened)).status).toBe(200);
    return /playline_gateway_rejections_dropped_total\{reason="fault"\S* [1-9]/.test(await readMetrics(opened));
  });
  expect((await post(opened)).status).toBe(200);
  expect(await opened.close()).toBe(0);
});
