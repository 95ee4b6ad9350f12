import { gzipSync } from 'node:zlib';
import { createKeyText } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { expectEnvelope, KEY_HEADER, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const LIMIT = 1024 * 1024;

it.each([
  ['an empty batch', { messages: [] }],
  ['101 messages', { messages: Array.from({ length: 101 }, () => message()) }],
  ['no messages', {}],
  ['an array', [message()]],
])('a 400 to a batch answers %s with an envelope', async (_name, body) => {
  const { post, producer } = await openGateway();
  const answer = await post(body);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', expect.objectContaining({ field: 'messages' }));
  expect(producer.sent).toEqual([]);
});

it('a 400 to a batch frees the capacity of every body that it refuses', async () => {
  const { post, metrics } = await openGateway();
  for (const body of ['', 'no json', Buffer.alloc(LIMIT + 1), '{"messages":[{}]}'])
    expect((await post(body)).status).toBe(400);
  expect((await post(gzipSync(Buffer.alloc(LIMIT + 1)), { 'content-encoding': 'gzip' })).status).toBe(400);
  expect(await metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

it('a 401 to a batch answers a malformed key, an unknown one and a secret one', async () => {
  const { post, secretKey, producer } = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const key of ['nonsense', unknown, secretKey]) {
    const answer = await post({ messages: [message()] }, { [KEY_HEADER]: key });
    expect(answer.status).toBe(401);
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: KEY_HEADER });
  }
  expect(producer.sent).toEqual([]);
});

it.each(['GET', 'PUT', 'DELETE', 'PATCH'])(
  'a 404 at the ingest path answers %s on the path of the messages',
  async (method) => {
    const { url } = await openGateway();
    const answer = await fetch(url + MESSAGES, { method });
    expect(answer.status).toBe(404);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  },
);

it('a 404 at the ingest path answers any other path', async () => {
  const { url } = await openGateway();
  for (const path of ['/', '/v1', '/v2/audience/messages', `${MESSAGES}/x`])
    await expectEnvelope(await fetch(url + path, { method: 'POST' }), 'RESOURCE_NOT_FOUND');
});
