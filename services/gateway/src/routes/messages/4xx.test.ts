import { gzipSync } from 'node:zlib';
import { createKeyText } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { expectEnvelope, KEY_HEADER, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const LIMIT = 1024 * 1024;

it.each([
  ['an empty batch', { messages: [] }],
  ['101 messages', { messages: Array.from({ length: 101 }, () => message()) }],
  ['a body without messages', {}],
  ['an array as the body', [message()]],
])('%s returns 400 with an error envelope', async (_name, body) => {
  const { post, producer } = await openGateway();
  const response = await post(body);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', expect.objectContaining({ field: 'messages' }));
  expect(producer.sent).toEqual([]);
});

it('the memory of a body is freed if the body is refused with 400', async () => {
  const { post, metrics } = await openGateway();
  for (const body of ['', 'not JSON', Buffer.alloc(LIMIT + 1), '{"messages":[{}]}'])
    expect((await post(body)).status).toBe(400);
  expect((await post(gzipSync(Buffer.alloc(LIMIT + 1)), { 'content-encoding': 'gzip' })).status).toBe(400);
  expect(await metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'publishable' } as const;

it('a batch with a malformed, unknown or secret key returns 401', async () => {
  const { post, secretKey, producer } = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const key of ['nonsense', unknown, secretKey]) {
    const response = await post({ messages: [message()] }, { [KEY_HEADER]: key });
    expect(response.status).toBe(401);
    await expectEnvelope(response, 'UNAUTHORISED_REQUEST', { header: KEY_HEADER });
  }
  expect(producer.sent).toEqual([]);
});

it.each(['GET', 'PUT', 'DELETE', 'PATCH'])('%s at the messages path returns 404', async (method) => {
  const { url } = await openGateway();
  const response = await fetch(url + MESSAGES, { method });
  expect(response.status).toBe(404);
  await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
});

it('a POST to an unknown path returns 404', async () => {
  const { url } = await openGateway();
  for (const path of ['/', '/v1', '/v2/audience/messages', `${MESSAGES}/x`])
    await expectEnvelope(await fetch(url + path, { method: 'POST' }), 'RESOURCE_NOT_FOUND');
});
