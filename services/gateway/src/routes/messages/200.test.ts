import { gzipSync } from 'node:zlib';
import { FRAME_BYTES, identityLinkCodec, schemaIdOf } from '@playline/contracts';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, message, openGateway, sentMessages } from '../../test/open-gateway.ts';

it('a 200 to a batch is given only after every record of the batch is acknowledged', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'hold';
  let answered = false;
  const answer = gateway.post({ messages: [message(), message()] }).then((response) => {
    answered = true;
    return response;
  });
  const send = await until('the batch is sent', () => gateway.producer.sent[0]);
  // A complete other request is answered while the batch waits.
  expect((await fetch(gateway.url)).status).toBe(404);
  expect(answered).toBe(false);
  send.done(null);
  expect(await (await answer).json()).toEqual({ success: true, accepted: 2, rejected: 0, rejections: [] });
});

it('a 200 to a batch carries its trace into the records and the answer', async () => {
  const gateway = await openGateway();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
  const long = message({ properties: { level: 'x'.repeat(100) } });
  const answer = await gateway.post({ messages: [long, message()] }, { traceparent });
  expect(answer.headers.get('x-trace-id')).toBe(traceId);
  // The header would be a third of the shorter record, which has the trace in its value only.
  expect(gateway.producer.sent[0]?.records.map(({ headers }) => headers)).toEqual([{ traceparent }, {}]);
  expect(sentMessages(gateway.producer).map((sent) => sent.traceId)).toEqual([traceId, traceId]);
});

it('a 200 to a batch gives the messages of one identity one record key, and messages without an identity none', async () => {
  const { post, producer } = await openGateway();
  await post({
    messages: [message(), message(), message({ anonymousId: 'visitor-2' }), message({ anonymousId: null })],
  });
  const [first, second, third, fourth] = producer.sent[0]?.records ?? [];
  expect(first?.key?.toString('latin1')).toMatch(/^demo-test.{16}$/s);
  expect(second?.key).toEqual(first?.key);
  expect(third?.key).not.toEqual(first?.key);
  expect(fourth?.key).toBeNull();
});

it.each([
  ['as the scan reads it', ''],
  ['as the parser reads it', ',{}'],
])('a 200 to a batch stores one bad among 100 not, and the 99 others, %s', async (_name, last) => {
  const { post, producer } = await openGateway();
  const good = Array.from({ length: 99 }, (_, level) => message({ properties: { level } }));
  const answer = await post(`{"messages":[${good.map((one) => JSON.stringify(one)).join()}${last}]}`);
  const rejected = last === '' ? 0 : 1;
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ success: true, accepted: 99, rejected });
  const stored = sentMessages(producer);
  expect(stored.map(({ properties }) => properties)).toEqual(good.map(({ properties }) => JSON.stringify(properties)));
});

it('a 200 to a batch sends a link fact with each identify and alias that links, in the same request', async () => {
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
  // An invalid message in the batch changes nothing.
  expect(await links([{}])).toMatchObject(expected);
});

it('a 200 to a batch counts what it accepted, and the batches that had rejections', async () => {
  const { post, metrics } = await openGateway();
  await post({ messages: [message()] });
  await post({ messages: [message(), {}] });
  const text = await metrics();
  expect(text).toContain('playline_gateway_messages_accepted_total{service="gateway"} 2');
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

/** A body that is one message with a piece of JSON text as its properties. */
function withProperties(text: string): string {
  return `{"messages":[${JSON.stringify(message()).slice(0, -1)},"properties":${text}}]}`;
}

it.each([
  ['not JSON', 'messages=1', { offset: 0, found: 'messages' }],
  [
    'a batch with NaN in its second message',
    `{"messages":[{},{"properties":{"fps":NaN}},{}]}`,
    { offset: 37, messageIndex: 1, found: 'NaN' },
  ],
])('a body that is %s is refused with the position of the fault', async (_name, body, { offset, ...fault }) => {
  const { post } = await openGateway();
  const answer = await post(body);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { offset, line: 1, column: offset + 1, ...fault });
});

it('a body behind a UTF-8 byte order mark is read as without it, compressed or not', async () => {
  const { post, producer } = await openGateway();
  const body = Buffer.from(`\ufeff${JSON.stringify({ messages: [message({ eventName: 'marked' })] })}`);
  expect((await post(body)).status).toBe(200);
  expect((await post(gzipSync(body), { 'content-encoding': 'gzip' })).status).toBe(200);
  expect(sentMessages(producer).map(({ eventName }) => eventName)).toEqual(['marked', 'marked']);
});

it('a body in many packets keeps its own bytes when other large bodies come at the same time', async () => {
  const { post, producer } = await openGateway();
  const note = 'x'.repeat(2_000);
  const bodies = Array.from({ length: 12 }, (_, caller) =>
    Array.from({ length: 60 + caller }, (_, n) =>
      message({ anonymousId: `caller-${caller}`, properties: { n, note } }),
    ),
  );
  const answers = await Promise.all(bodies.map((messages) => post({ messages })));
  expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 200));
  const stored = sentMessages(producer).map(({ anonymousId, properties }) => `${anonymousId} ${properties}`);
  const expected = bodies.flat().map((each) => `${each.anonymousId} ${JSON.stringify(each.properties)}`);
  expect(stored.sort()).toEqual(expected.sort());
});

it('a body of white space and one message takes and counts only the memory of that message while it waits', async () => {
  // Each is charged for its mebibyte.
  const { post, producer, metrics } = await openGateway({ RATE_LIMIT_BURST: 100_000, PUBLISH_DEADLINE_MS: 20_000 });
  const body = gzipSync(JSON.stringify({ messages: [message()] }).padEnd(LIMIT));
  producer.mode = 'hold';
  const answers = Array.from({ length: 12 }, () => post(body, { 'content-encoding': 'gzip' }));
  await until('all are in flight', () => producer.sent.length === answers.length);
  const records = producer.sent.flatMap((send) => send.records);
  const pinned = new Set(records.flatMap(({ key, value }) => [value.buffer, ...(key === null ? [] : [key.buffer])]));
  expect([...pinned].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThanOrEqual(LIMIT);
  expect(await metrics()).toMatch(/playline_gateway_in_flight_bytes{service="gateway"} [1-9][0-9]{3}\n/);
  for (const { done } of producer.sent) done(null);
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
});

it('a body keeps properties byte for byte as they were sent', async () => {
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

it('a body with properties of the deepest allowed nesting is stored; one level deeper, or 10,000, it loses that message', async () => {
  const { post, producer } = await openGateway();
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
  expect((await post(withProperties(nested(64)))).status).toBe(200);
  expect(sentMessages(producer)[0]?.properties).toBe(nested(64));
  for (const levels of [65, 5_000]) {
    const answer = await post(withProperties(nested(levels)));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      rejections: [{ errors: [{ field: 'properties', code: 'INVALID_VALUE' }] }],
    });
  }
});
