import { gzipSync } from 'node:zlib';
import { FRAME_BYTES, identityLinkCodec, schemaIdOf } from '@playline/contracts';
import { createLogger, openTracing } from '@playline/runtime';
import { until, useTraceReceiver } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, message, openGateway, sentMessages } from '../../test/open-gateway.ts';

it('a batch returns 200 only after the brokers have acknowledged all of its records', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'hold';
  let isSettled = false;
  const response = gateway.post({ messages: [message(), message()] }).finally(() => {
    isSettled = true;
  });
  const send = await until('the batch is sent', () => gateway.producer.sent[0]);
  // Another request completes while the batch waits.
  expect((await fetch(`${gateway.url}/none`)).status).toBe(404);
  expect(isSettled).toBe(false);
  send.done(null);
  expect(await (await response).json()).toEqual({ success: true, accepted: 2, rejected: 0, rejections: [] });
});

it('the records and the response of a batch contain the trace id of the request', async () => {
  const gateway = await openGateway();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const traceparent = `00-${traceId}-00f067aa0ba902b7-00`;
  const long = message({ properties: { level: 'x'.repeat(100) } });
  const response = await gateway.post({ messages: [long, message()] }, { traceparent });
  expect(response.headers.get('x-trace-id')).toBe(traceId);
  // The shorter record has no header, which would be a third of its size. The record value has the trace id.
  expect(gateway.producer.sent[0]?.records.map(({ headers }) => headers)).toEqual([{ traceparent }, {}]);
  expect(sentMessages(gateway.producer).map((sent) => sent.traceId)).toEqual([traceId, traceId]);
});

it('a recorded request exports a span without message content, which the header of its records continues', async () => {
  const { endpoint, spans, bodies } = await useTraceReceiver();
  const logger = createLogger({ service: 'test', level: 'silent' });
  const config = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: 1 };
  const tracing = (await openTracing(async (_, open) => open(), { service: 'gateway', config, logger }))!;
  const gateway = await openGateway({ tracing });
  const secret = 'x'.repeat(300);
  const { headers } = await gateway.post({ messages: [message({ properties: { secret } }), {}] });
  await fetch(`${gateway.url}/${gateway.key}`);
  await tracing.close();
  const [span, unmatched] = spans;
  expect(span).toMatchObject({
    service: 'gateway',
    traceId: headers.get('x-trace-id'),
    name: 'POST /v1/audience/messages',
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/audience/messages',
      'http.response.status_code': 200,
      'playline.environment': 'demo-test',
      'playline.messages.accepted': 1,
      'playline.messages.rejected': 1,
    },
  });
  const traceparent = `00-${span!.traceId}-${span!.spanId}-01`;
  expect(gateway.producer.sent[0]?.records.map((record) => record.headers)).toEqual([{ traceparent }]);
  expect(unmatched).toMatchObject({ name: 'GET unmatched', attributes: { 'http.response.status_code': 404 } });
  for (const text of [secret, gateway.key]) expect(bodies.join()).not.toContain(text);
});

it('messages of the same identity have the same record key, and the key of a message without an identity is its id', async () => {
  const { post, producer } = await openGateway();
  const unowned = message({ anonymousId: null });
  await post({ messages: [message(), message(), message({ anonymousId: 'visitor-2' }), unowned] });
  const [first, second, third, fourth] = producer.sent[0]?.records ?? [];
  expect(first?.key?.toString('latin1')).toMatch(/^demo-test.{16}$/s);
  expect(second?.key).toEqual(first?.key);
  expect(third?.key).not.toEqual(first?.key);
  expect(fourth?.key?.toString()).toBe(unowned.messageId);
});

it.each([
  ['only valid messages', ''],
  ['an invalid last message', ',{}'],
])('a batch with %s stores all 99 valid messages', async (_name, last) => {
  const { post, producer } = await openGateway();
  const valid = Array.from({ length: 99 }, (_, level) => message({ properties: { level } }));
  const response = await post(`{"messages":[${valid.map((sent) => JSON.stringify(sent)).join()}${last}]}`);
  const rejected = last === '' ? 0 : 1;
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ success: true, accepted: 99, rejected });
  const stored = sentMessages(producer);
  expect(stored.map(({ properties }) => properties)).toEqual(valid.map(({ properties }) => JSON.stringify(properties)));
});

it('a batch publishes a link fact for each identify and alias message together with the messages', async () => {
  const { post, producer } = await openGateway();
  const identify = message({ type: 'identify', userId: ' user-1 ', identityType: 'steam' });
  const alias = message({ type: 'alias', fromId: 'a', toId: 'b', toType: 'email' });
  const links = async (extra: object[]) => {
    producer.sent.length = 0;
    expect((await post({ messages: [message(), identify, alias, ...extra] })).status).toBe(200);
    const records = producer.sent[0]?.records.filter(({ topic }) => topic === 'test.audience.identity-links.v1') ?? [];
    expect(records.map(({ key, value }) => [key?.toString(), schemaIdOf(value)])).toEqual([
      ['demo-test', 2],
      ['demo-test', 2],
    ]);
    return records.map(({ value }) => identityLinkCodec.decode(value.subarray(FRAME_BYTES)));
  };
  const expected = [
    { link: 'identify', fromKind: 'anonymous', fromId: 'visitor-1', toKind: 'steam', toId: 'user-1' },
    { link: 'alias', fromKind: 'untyped', fromId: 'a', toKind: 'email', toId: 'b' },
  ];
  expect(await links([])).toMatchObject(expected);
  // An invalid message in the batch does not affect the link facts.
  expect(await links([{}])).toMatchObject(expected);
});

it('metrics count messages by environment, rejections by code, and batches with rejections', async () => {
  const { post, metrics } = await openGateway();
  await post({ messages: [message()] });
  await post({ messages: [message(), {}] });
  const text = await metrics();
  expect(text).toContain('playline_gateway_messages_accepted_total{environment="demo-test",service="gateway"} 2');
  expect(text).toContain('playline_gateway_messages_rejected_total{environment="demo-test",service="gateway"} 1');
  expect(text).toMatch(
    /playline_http_request_duration_seconds_count\{service="gateway",route="\/v1\/audience\/messages",method="POST",status="200"\} 2/,
  );
  expect(text).toContain('playline_gateway_batches_total{verdict="accepted",service="gateway"} 1');
  expect(text).toContain('playline_gateway_batches_total{verdict="rejections",service="gateway"} 1');
  expect(text).toContain('playline_gateway_rejections_total{code="MISSING_REQUIRED_FIELD",service="gateway"}');
  expect(text).toContain('playline_gateway_publish_duration_seconds_count{service="gateway"} 2');
  expect(text).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

const LIMIT = 1024 * 1024;

/** Creates a body with one message that has the given JSON as its properties. */
function withProperties(text: string): string {
  return `{"messages":[${JSON.stringify(message()).slice(0, -1)},"properties":${text}}]}`;
}

it.each([
  ['that is not JSON', 'messages=1', { offset: 0, found: 'messages' }],
  [
    'with NaN in the second message',
    `{"messages":[{},{"properties":{"fps":NaN}},{}]}`,
    { offset: 37, messageIndex: 1, found: 'NaN' },
  ],
])('a body %s returns 400 with the position of the error', async (_name, body, { offset, ...error }) => {
  const { post } = await openGateway();
  const response = await post(body);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', { offset, line: 1, column: offset + 1, ...error });
});

it('a byte order mark is ignored in plain and in compressed bodies', async () => {
  const { post, producer } = await openGateway();
  const body = Buffer.from(`\ufeff${JSON.stringify({ messages: [message({ eventName: 'marked' })] })}`);
  expect((await post(body)).status).toBe(200);
  expect((await post(gzipSync(body), { 'content-encoding': 'gzip' })).status).toBe(200);
  expect(sentMessages(producer).map(({ eventName }) => eventName)).toEqual(['marked', 'marked']);
});

it('large bodies that arrive concurrently in many packets are not mixed up', async () => {
  const { post, producer } = await openGateway();
  const note = 'x'.repeat(2_000);
  const bodies = Array.from({ length: 12 }, (_, caller) =>
    Array.from({ length: 60 + caller }, (_, n) =>
      message({ anonymousId: `caller-${caller}`, properties: { n, note } }),
    ),
  );
  const responses = await Promise.all(bodies.map((messages) => post({ messages })));
  expect(responses.map(({ status }) => status)).toEqual(bodies.map(() => 200));
  const stored = sentMessages(producer).map(({ anonymousId, properties }) => `${anonymousId} ${properties}`);
  const expected = bodies.flat().map((sent) => `${sent.anonymousId} ${JSON.stringify(sent.properties)}`);
  expect(stored.sort()).toEqual(expected.sort());
});

it('while a body of one message and white space is in flight, only the memory of the message is used and counted', async () => {
  // The burst is high because each body is charged for 1 MiB.
  const { post, producer, metrics } = await openGateway({ RATE_LIMIT_BURST: 100_000, PUBLISH_DEADLINE_MS: 20_000 });
  const body = gzipSync(JSON.stringify({ messages: [message()] }).padEnd(LIMIT));
  producer.mode = 'hold';
  const responses = Array.from({ length: 12 }, () => post(body, { 'content-encoding': 'gzip' }));
  await until('all batches are in flight', () => producer.sent.length === responses.length);
  const records = producer.sent.flatMap((send) => send.records);
  const buffers = new Set(records.flatMap(({ key, value }) => [value.buffer, ...(key === null ? [] : [key.buffer])]));
  expect([...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThanOrEqual(LIMIT);
  expect(await metrics()).toMatch(/playline_gateway_in_flight_bytes{service="gateway"} [1-9][0-9]{3}\n/);
  for (const { done } of producer.sent) done(null);
  for (const response of await Promise.all(responses)) expect(response.status).toBe(200);
});

it('properties are stored byte for byte as sent', async () => {
  const { post, producer } = await openGateway();
  const texts = [
    '{ "a" : 1.0,\n"b":1e300,"c":12345678901234567890 }',
    '{"__proto__":{"polluted":true},"constructor":1}',
    '{"nul":"\\u0000","pair":"\\ud83d\\uDE00","escaped":"\\u0041"}',
    '{"emoji":"🎮","line":"\u2028"}',
  ];
  for (const text of texts) expect((await post(withProperties(text))).status).toBe(200);
  expect(sentMessages(producer).map(({ properties }) => properties)).toEqual(texts);
  expect('polluted' in {}).toBe(false);
});

it('properties with 64 levels of nesting are stored, and a message with deeper properties is rejected', async () => {
  const { post, producer } = await openGateway();
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
  expect((await post(withProperties(nested(64)))).status).toBe(200);
  expect(sentMessages(producer)[0]?.properties).toBe(nested(64));
  for (const levels of [65, 5_000]) {
    const response = await post(withProperties(nested(levels)));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      rejections: [{ errors: [{ field: 'properties', code: 'INVALID_VALUE' }] }],
    });
  }
});
