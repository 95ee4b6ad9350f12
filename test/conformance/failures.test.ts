// Contract, "Rules of a batch" (rows "Brokers" and "Overload") and "Error envelope" (500).
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { TOPICS } from '@playline/contracts';
import { applyTopics } from '@playline/infra/kafka';
import { openStoreProxy, type StoreProxy, TEST_PARTITIONS, testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  type ClientResponse,
  CONSENT_PATH,
  DATA_PATH,
  expectAccepted,
  expectEnvelope,
  MESSAGES_PATH,
  message,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { messagesInLog } from './log.ts';

/** The smallest valid setting: two batches of the maximum size. */
const IN_FLIGHT_BYTES = 2 << 20;
const BATCH_BYTES = 1 << 20;
/** Enough time for brokers to apply changes on a busy machine. */
const WAIT_MAX_MS = 60_000;

let proxy: StoreProxy;
let client: Client & ConformanceGateway;
beforeAll(async () => {
  const redis = new URL(testStores().redis);
  proxy = await openStoreProxy(Number(redis.port));
  redis.port = String(proxy.port);
  client = await startGateway({
    REDIS_URL: redis.href,
    BYTES_IN_FLIGHT_MAX: String(IN_FLIGHT_BYTES),
    LOG_LEVEL: 'fatal',
    RATE_LIMIT_FAILED_KEYS_PER_MINUTE: '100000',
    PUBLISH_DEADLINE_MS: '10000',
  });
}, START_MAX_MS);
afterAll(async () => {
  await client.close();
  await proxy.close();
});

/** Strings that a response would contain if it revealed internal errors. */
const INTERNAL_DETAILS =
  /redis|kafka|broker|ECONN|EPIPE|socket|127\.0\.0\.1:\d+ |\bat .*:\d+:\d+|node:|\.ts\b|MOVED|topic|stack/i;

function expectNoInternalDetails(response: ClientResponse): void {
  expectEnvelope(response, 500, 'INTERNAL_SERVER_ERROR');
  expect(response.body.details).toBeNull();
  expect(response.body.message).toBe('The service could not complete the request.');
  expect(response.body.message).not.toMatch(INTERNAL_DETAILS);
  const written = JSON.stringify([...response.headers]);
  expect(written).not.toMatch(/redis|kafka|ECONN/i);
}

const publishable = () => ({ 'content-type': 'application/json', 'x-service-publishable-key': client.publishableKey });
const REQUESTS: [string, () => Promise<ClientResponse>][] = [
  ['reading a consent', () => client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: publishable() })],
  [
    'writing a consent',
    () =>
      client.request(CONSENT_PATH, {
        method: 'PUT',
        headers: publishable(),
        body: JSON.stringify({ anonymousId: 'a', status: 'full', source: 'banner' }),
      }),
  ],
  [
    'an erasure',
    () =>
      client.request(`${DATA_PATH}?userId=u`, { method: 'DELETE', headers: { 'x-service-api-key': client.secretKey } }),
  ],
  [
    'a batch with an unknown key',
    () => client.post({ messages: [track()] }, { 'x-service-publishable-key': client.unknownKey }),
  ],
];

it.each(REQUESTS)('while Redis is unavailable, the 500 for %s has no internal details', async (_, send) => {
  expectAccepted(await client.send(track()));
  proxy.mode = 'cut';
  try {
    expectNoInternalDetails(
      await until('the request fails', async () => {
        const response = await send();
        return response.status >= 500 ? response : null;
      }),
    );
  } finally {
    proxy.mode = 'open';
  }
  await until('the request succeeds again', async () => (await send()).status < 500);
});

const linkTopic = () => client.topicPrefix + TOPICS.identityLinks.name;

async function deleteLinkTopic(): Promise<void> {
  const admin = new Kafka({ brokers: testStores().kafka, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [linkTopic()] });
  await until('the topic is deleted', async () => !(await admin.listTopics()).includes(linkTopic()), WAIT_MAX_MS);
  await admin.disconnect();
}

it(
  'a batch that the brokers cannot store completely returns 500 without internal details, and is accepted when it is resent',
  async () => {
    await deleteLinkTopic();
    const plain = track();
    const linking = message('identify', { anonymousId: 'visitor' });
    expectNoInternalDetails(await client.send(plain, linking));
    const { kafka, registry } = testStores();
    await applyTopics({ brokers: kafka, registry, prefix: client.topicPrefix, partitions: TEST_PARTITIONS });
    await until('the batch is accepted', async () => (await client.send(plain, linking)).status === 200, WAIT_MAX_MS);
    const records = await messagesInLog(client.topicPrefix, [plain.messageId, linking.messageId]);
    expect(new Set(records.map(({ record }) => record.messageId.toString('hex'))).size).toBe(2);
  },
  START_MAX_MS,
);

/** Sends the headers of a batch and only the first bytes of its body. */
async function sendIncomplete(contentLength: number, sentBytes: number): Promise<Socket> {
  const socket = connect(Number(new URL(client.base).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const headers = { host: 'gateway', 'content-length': contentLength, ...publishable() };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.write(`POST ${MESSAGES_PATH} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  socket.write(Buffer.alloc(sentBytes, ' '));
  return socket;
}

it(
  'an overloaded gateway returns 429 with an integer Retry-After before it parses or receives the body',
  async () => {
    const sockets: Socket[] = [];
    const unreadable = '{'.repeat(10_000);
    const refused = await until(
      'a batch of invalid JSON is refused',
      async () => {
        // The gateway disconnects clients with incomplete bodies after a while, so each attempt uses more memory.
        if (sockets.length < 200) sockets.push(await sendIncomplete(BATCH_BYTES, BATCH_BYTES - 1));
        const response = await client.post(unreadable);
        return response.status === 429 ? response : null;
      },
      WAIT_MAX_MS,
    );
    expectEnvelope(refused, 429, 'TOO_MANY_REQUESTS_ERROR');
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    const early = await until(
      'a request is refused before its body',
      async () => {
        sockets.push(await sendIncomplete(BATCH_BYTES, BATCH_BYTES - 1));
        const socket = await sendIncomplete(BATCH_BYTES, 0);
        sockets.push(socket);
        const first = await Promise.race([once(socket, 'data'), client.post(unreadable)]);
        return Array.isArray(first) ? String(first[0]) : null;
      },
      WAIT_MAX_MS,
    );
    expect(early).toMatch(/^HTTP\/1\.1 429 [\s\S]*\r\nretry-after: [1-9]\d*\r\n/i);
    for (const socket of sockets) socket.destroy();
    await until('the gateway accepts batches again', async () => (await client.send(track())).status === 200);
  },
  START_MAX_MS,
);
