import { FRAME_BYTES, identityLinkCodec, schemaIdOf } from '@playline/contracts';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { message, openGateway, sentMessages } from '../../test/open-gateway.ts';

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

it('a 200 to a batch gives the messages of one identity one record key, and messages of nobody none', async () => {
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

it('a 200 to a batch rejects both copies of an id in one entry and stores neither', async () => {
  const { post, producer } = await openGateway();
  const [twin, other] = [message(), message()];
  const answer = await post({ messages: [twin, other, twin] });
  const duplicate = { field: 'messageId', code: 'DUPLICATE_MESSAGE_ID', message: expect.any(String) };
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    success: true,
    accepted: 1,
    rejected: 2,
    rejections: [{ messageId: twin.messageId, errors: [duplicate] }],
  });
  expect(sentMessages(producer)).toHaveLength(1);
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
