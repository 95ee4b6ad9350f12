import { gzipSync } from 'node:zlib';
import { isPlaceholder } from '@playline/people';
import { until } from '@playline/testkit';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CONSENT, getConsent, putConsent, sentConsents, wanted } from '../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../test/open-gateway.ts';

it('a 200 to a consent read answers not_set for an identity that has chosen nothing', async () => {
  const gateway = await openGateway();
  const answer = await getConsent(gateway);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  expect(await answer.json()).toEqual({ status: 'not_set' });
});

it.each(['none', 'anonymous', 'full'])(
  'a 200 to a consent read answers %s after it was chosen, whatever was chosen before',
  async (status) => {
    const gateway = await openGateway();
    for (const chosen of ['full', 'none', status]) await putConsent(gateway, wanted({ status: chosen }));
    expect(await (await getConsent(gateway)).json()).toEqual({ status });
  },
);

it('a 200 to a consent read answers for a percent-encoded id in any script, and for no other id', async () => {
  const gateway = await openGateway();
  const id = fc.string({ unit: codePoint, minLength: 1, maxLength: 60 }).filter((text) => !isPlaceholder(text));
  const property = fc.asyncProperty(
    fc.uniqueArray(id, { minLength: 2, maxLength: 2, selector: (text) => text.trim() }),
    async ([own, other]) => {
      expect((await putConsent(gateway, wanted({ anonymousId: own }))).status).toBe(204);
      const read = async (text: string) =>
        await (await getConsent(gateway, `?anonymousId=${encodeURIComponent(text)}`)).json();
      expect(await read(own!)).toEqual({ status: 'full' });
      await putConsent(gateway, wanted({ anonymousId: other, status: 'none' }));
      expect(await read(own!)).toEqual({ status: 'full' });
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('a 200 to a consent read treats an id with white space around it as the same id', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted({ anonymousId: '  visitor-1 ' }));
  expect(await (await getConsent(gateway, '?anonymousId=visitor-1+')).json()).toEqual({ status: 'full' });
});

it('a 200 to a consent read answers not_set for a placeholder, although an id beside it has a consent', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted());
  expect(await (await getConsent(gateway, '?anonymousId=undefined')).json()).toEqual({ status: 'not_set' });
});

it('a 200 to a consent read keeps environments apart', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted());
  const key = gateway.keyer('other-test', 'anonymous', 'visitor-1');
  expect(await gateway.audience.people.consents.read('other-test', key)).toBeNull();
});

it('a 204 to a consent change has no body, and writes the change to the log with source, time and trace, keyed by the identity', async () => {
  const gateway = await openGateway();
  const startedAt = Date.now();
  const answer = await putConsent(gateway, wanted({ status: 'anonymous' }));
  expect(answer.status).toBe(204);
  expect(await answer.text()).toBe('');
  expect(answer.headers.get('content-length')).toBeNull();
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  const identityKey = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  const [change] = sentConsents(gateway.producer);
  expect(change).toMatchObject({ environmentId: 'demo-test', status: 'anonymous', source: 'cookie-banner' });
  expect(change).toMatchObject({ identityKey, traceId: answer.headers.get('x-trace-id') });
  expect(change!.receivedAt).toBeGreaterThanOrEqual(startedAt);
  const [record] = gateway.producer.sent[0]!.records;
  expect(record!.key).toEqual(Buffer.concat([Buffer.from('demo-test'), identityKey]));
  expect(record!.headers?.traceparent).toContain(answer.headers.get('x-trace-id'));
});

it('a 204 to a consent change comes only after the brokers have acknowledged, and the store has nothing before', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'hold';
  let answered = false;
  const answer = putConsent(gateway, wanted()).finally(() => {
    answered = true;
  });
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  gateway.producer.mode = 'acknowledge';
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
  expect(answered).toBe(false);
  gateway.producer.sent[0]!.done(null);
  expect((await answer).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'full' });
});

it('a 204 to a consent change answers a change that a later one in the log has overtaken, and keeps the later one', async () => {
  const gateway = await openGateway();
  const identityKey = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  const position = { partition: 0, offset: 1_000, loggedAtMs: Date.now() };
  const later = { environmentId: 'demo-test', identityKey, status: 'none', receivedAt: Date.now() } as const;
  await gateway.audience.people.consents.apply({ ...later, position });
  expect((await putConsent(gateway, wanted())).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'none' });
  expect(await gateway.metrics()).toContain(
    'playline_gateway_consents_total{outcome="superseded",service="gateway"} 1',
  );
});

it('a 204 to a consent change answers a change up to the cut-off of an erasure, which the store does not keep', async () => {
  const gateway = await openGateway();
  const key = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  await gateway.audience.people.guards.fence([{ environmentId: 'demo-test', key, cutoffMs: Date.now() + 60_000 }]);
  expect((await putConsent(gateway, wanted())).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
});

it('a 204 to a consent change takes unknown members, the longest change with every character escaped, and a compressed one', async () => {
  const gateway = await openGateway();
  expect((await putConsent(gateway, wanted({ extra: { deep: [1] } }))).status).toBe(204);
  const escaped = '\\ud83c\\udfae';
  const body = `{"anonymousId":"${escaped.repeat(256)}","status":"none","source":"${escaped.repeat(128)}"}`;
  expect((await putConsent(gateway, body)).status).toBe(204);
  const zipped = await putConsent(gateway, gzipSync(JSON.stringify(wanted())), { 'content-encoding': 'gzip' });
  expect(zipped.status).toBe(204);
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

const LONG_ID = 'x'.repeat(257);

it.each([
  ['no anonymousId', ''],
  ['a blank one', '?anonymousId=%20+'],
  ['an empty one', '?anonymousId'],
  ['one that is too long', `?anonymousId=${LONG_ID}`],
  ['two', '?anonymousId=a&anonymousId=a'],
  ['two, one of them encoded', '?anonymousId=a&anonymous%49d=b'],
  ['another spelling', '?anonymousid=a'],
])('a 400 of the consent operations answers a GET with %s', async (_name, query) => {
  const answer = await getConsent(await openGateway(), query);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each(['%', '%zz', '%ff', '%ed%a0%80', '%c3'])(
  'a 400 of the consent operations answers a GET whose id %s is not percent-encoded UTF-8',
  async (id) => {
    const answer = await getConsent(await openGateway(), `?anonymousId=a${id}`);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR');
  },
);

it.each([
  ['anonymousId', undefined],
  ['anonymousId', null],
  ['anonymousId', ' \t'],
  ['anonymousId', 7],
  ['anonymousId', ['a']],
  ['anonymousId', LONG_ID],
  ['anonymousId', ' Undefined '],
  ['anonymousId', '{}'],
  ['status', undefined],
  ['status', null],
  ['status', 'not_set'],
  ['status', 'FULL'],
  ['status', 1],
  ['status', 'toString'],
  ['source', undefined],
  ['source', null],
  ['source', ''],
  ['source', {}],
  ['source', 'x'.repeat(129)],
])('a 400 of the consent operations answers a PUT with %s %j', async (field, value) => {
  const gateway = await openGateway();
  const answer = await putConsent(gateway, wanted({ [field]: value }));
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { field });
  expect(gateway.producer.sent).toEqual([]);
});

it('a 400 of the consent operations answers a PUT with a lone surrogate, which is not Unicode text', async () => {
  const body = '{"anonymousId":"a\\ud800","status":"full","source":"s"}';
  await expectEnvelope(await putConsent(await openGateway(), body), 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each([
  ['nothing', '', {}, { offset: 0, line: 1, column: 1, found: 'end of body' }],
  ['no JSON', '{\n"status":None}', {}, { offset: 11, line: 2, column: 10, found: 'None' }],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, { offset: 1, line: 1, column: 2, found: 'byte 0xFF' }],
  ['an array', '[]', {}, null],
  ['null', 'null', {}, null],
  ['another type', '{}', { 'content-type': 'text/plain' }, { header: 'content-type' }],
  ['another encoding', '{}', { 'content-encoding': 'lzma' }, { header: 'content-encoding' }],
  ['a broken encoding', 'x', { 'content-encoding': 'gzip' }, { header: 'content-encoding' }],
  ['too many bytes', ' '.repeat(16 * 1024 + 1), {}, { limitBytes: 16 * 1024 }],
  ['a bomb', gzipSync(Buffer.alloc(1024 * 1024)), { 'content-encoding': 'gzip' }, { limitBytes: 16 * 1024 }],
])(
  'a 400 of the consent operations answers a PUT of %s, and frees its capacity',
  async (_name, body, headers, details) => {
    const gateway = await openGateway();
    const answer = await putConsent(gateway, body, headers as Record<string, string>);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', details);
    expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  },
);

it.each(['POST', 'DELETE', 'PATCH'])('a 404 at the consent path answers %s', async (method) => {
  const { url } = await openGateway();
  const answer = await fetch(url + CONSENT, { method });
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
});

it('a 429 of the consent operations answers with Retry-After, before the body is read, while the bytes in flight are at their bound', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 });
  gateway.producer.mode = 'hold';
  const first = putConsent(gateway, wanted());
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  const answer = await putConsent(gateway, wanted());
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('1');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  gateway.producer.sent[0]!.done(null);
  expect((await first).status).toBe(204);
});

it('a 500 of the consent operations answers a change that the brokers refuse without leaking the reason, and the store does not have it', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  const answer = await putConsent(gateway, wanted());
  expect(answer.status).toBe(500);
  expect(await answer.clone().text()).not.toContain('broker-7');
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(gateway.logLines.join()).toContain('NOT_ENOUGH_REPLICAS');
  expect(gateway.logLines.join()).not.toContain('visitor-1');
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

it('a 500 of the consent operations answers at the deadline: no attempt begins afterwards, and a change that reaches the log later is in the store all the same', async () => {
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  gateway.producer.mode = 'hold';
  expect((await putConsent(gateway, wanted())).status).toBe(500);
  expect(gateway.producer.deliveries).toEqual([{ attemptsMaxMs: 100 }]);
  expect(await gateway.metrics()).not.toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  gateway.producer.sent[0]!.done(null);
  await until('the change is in the store', async () => (await (await getConsent(gateway)).text()).includes('full'));
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

it('a 500 of the consent operations answers while the store is away, and the same change sent again is accepted', async () => {
  const gateway = await openGateway();
  const { consents } = gateway.audience.people;
  let away = true;
  const apply: typeof consents.apply = (change) =>
    away ? Promise.reject(new Error('ECONNREFUSED')) : consents.apply(change);
  const other = await openGateway({ audience: { consents: { apply, read: consents.read } } });
  const first = await putConsent(other, wanted());
  expect(first.status).toBe(500);
  await expectEnvelope(first, 'INTERNAL_SERVER_ERROR');
  expect(other.producer.sent).toHaveLength(1);
  away = false;
  expect((await putConsent(other, wanted())).status).toBe(204);
  expect(await (await getConsent(other)).json()).toEqual({ status: 'full' });
});

it('a 500 of the consent operations answers, and never not_set, when the store has lost its content', async () => {
  const gateway = await openGateway();
  gateway.audience.people.loseEpoch();
  expect((await getConsent(gateway)).status).toBe(500);
  expect((await putConsent(gateway, wanted())).status).toBe(500);
});

it('a 500 of the consent operations answers a change while the id of its schema is unknown, which reading does not need', async () => {
  const gateway = await openGateway({ audience: { schemaIds: () => null } });
  expect((await putConsent(gateway, wanted())).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect((await getConsent(gateway)).status).toBe(200);
});

it('a 500 of the consent operations answers, and never 400, when the key store cannot answer', async () => {
  const readSince = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const gateway = await openGateway({ readSince });
  expect((await getConsent(gateway)).status).toBe(500);
  expect((await putConsent(gateway, wanted())).status).toBe(500);
});
