import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { expectEnvelope, KEY_HEADER, MESSAGES, message, openGateway } from '../../test/open-gateway.ts';

const LIMIT = 1024 * 1024;

it('a 400 to a batch answers a missing key header and names it', async () => {
  const { url, post } = await openGateway();
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url + MESSAGES, { method: 'POST', headers, body: '{}' });
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { header: KEY_HEADER });
  await expectEnvelope(await post({}, { [KEY_HEADER]: '' }), 'VALIDATION_ERROR', { header: KEY_HEADER });
});

it('a 400 to a batch answers with the MessagesResponse when every message fails', async () => {
  const { post, producer } = await openGateway();
  const answer = await post({ messages: [message({ type: 'click' }), 7] });
  expect(answer.status).toBe(400);
  const body = await answer.json();
  expect(body).toMatchObject({ success: false, accepted: 0, rejected: 2 });
  expect(producer.sent).toEqual([]);
});

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

it('a 400 to a batch frees the room of every body that it refuses', async () => {
  const { post, metrics } = await openGateway();
  for (const body of ['', 'no json', Buffer.alloc(LIMIT + 1), '{"messages":[{}]}'])
    expect((await post(body)).status).toBe(400);
  expect((await post(gzipSync(Buffer.alloc(LIMIT + 1)), { 'content-encoding': 'gzip' })).status).toBe(400);
  expect(await metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});
