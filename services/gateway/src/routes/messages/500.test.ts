import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, message, openGateway } from '../../test/open-gateway.ts';

it('a batch that the brokers refuse returns 500 without internal details', async () => {
  const { post, producer, logLines } = await openGateway();
  producer.mode = 'fail';
  const response = await post({ messages: [message()] });
  expect(response.status).toBe(500);
  const text = await response.clone().text();
  expect(text).not.toContain('broker-7');
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(logLines).toHaveLength(1);
  expect(logLines[0]).toContain('NOT_ENOUGH_REPLICAS');
  expect(logLines[0]).toContain(response.headers.get('x-trace-id'));
});

it('a batch returns 500 at the deadline, its bytes count as in flight until the producer settles, and a late acknowledgement is ignored', async () => {
  const { post, producer, metrics } = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  producer.mode = 'hold';
  const response = await post({ messages: [message()] });
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(await metrics()).not.toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  producer.sent[0]?.done(null);
  expect(await metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  expect(await metrics()).not.toContain('messages_accepted_total{environment="demo-test"');
});

it('a batch returns 500 until the schema ids are resolved', async () => {
  let areResolved = false;
  const schemaIds = () => (areResolved ? { messages: 1, identityLinks: 2 } : null);
  const { post } = await openGateway({ schemaIds });
  expect((await post({ messages: [message()] })).status).toBe(500);
  areResolved = true;
  expect((await post({ messages: [message()] })).status).toBe(200);
});

it('a batch returns 500 instead of 401 if the key store is unavailable', async () => {
  const readSince = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const { post, logLines, key } = await openGateway({ readSince });
  const response = await post({ messages: [message()] });
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(logLines.join()).not.toContain(key.slice(-36));
});

it('the log lines of a failed batch do not contain message content', async () => {
  const { post, producer, logLines } = await openGateway();
  producer.mode = 'fail';
  await post({ messages: [message({ userId: 'someone-private', properties: { hidden: 'private-value' } })] });
  await until('the error is logged', () => logLines.length > 0);
  expect(logLines.join()).not.toMatch(/someone-private|hidden|private-value/);
});
