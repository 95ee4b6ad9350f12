import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, message, openGateway } from '../../test/open-gateway.ts';

it('a 500 to a batch answers a batch that the brokers refuse without leaking the reason', async () => {
  const { post, producer, logLines } = await openGateway();
  producer.mode = 'fail';
  const answer = await post({ messages: [message()] });
  expect(answer.status).toBe(500);
  const text = await answer.clone().text();
  expect(text).not.toContain('broker-7');
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(logLines).toHaveLength(1);
  expect(logLines[0]).toContain('NOT_ENOUGH_REPLICAS');
  expect(logLines[0]).toContain(answer.headers.get('x-trace-id'));
});

it('a 500 to a batch answers at the deadline, keeps the bytes counted until the producer settles, and ignores a late acknowledgement', async () => {
  const { post, producer, metrics } = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  producer.mode = 'hold';
  const answer = await post({ messages: [message()] });
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(await metrics()).not.toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  producer.sent[0]?.done(null);
  expect(await metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  expect(await metrics()).toContain('playline_gateway_messages_accepted_total{service="gateway"} 0');
});

it('a 500 to a batch answers while the schema ids are not known, and 200 as soon as they are', async () => {
  let known = false;
  const schemaIds = () => (known ? { messages: 1, identityLinks: 2 } : null);
  const { post } = await openGateway({ schemaIds });
  expect((await post({ messages: [message()] })).status).toBe(500);
  known = true;
  expect((await post({ messages: [message()] })).status).toBe(200);
});

it('a 500 to a batch answers, and never 401, when the key store cannot answer', async () => {
  const readSince = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const { post, logLines, key } = await openGateway({ readSince });
  const answer = await post({ messages: [message()] });
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(logLines.join()).not.toContain(key.slice(-36));
});

it('a 500 to a batch writes no content of messages to the log', async () => {
  const { post, producer, logLines } = await openGateway();
  producer.mode = 'fail';
  await post({ messages: [message({ userId: 'someone-private', properties: { hidden: 'word' } })] });
  await until('the fault is logged', () => logLines.length > 0);
  expect(logLines.join()).not.toMatch(/someone-private|hidden|word/);
});
