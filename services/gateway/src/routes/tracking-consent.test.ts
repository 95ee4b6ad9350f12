import { gzipSync } from 'node:zlib';
import { isPlaceholder } from '@playline/people';
import { until } from '@playline/testkit';
import { codePoint } from '@playline/testkit/code-point';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CONSENT, consentChange, getConsent, putConsent, sentConsents } from '../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../test/open-gateway.ts';

it('a consent read returns not_set for an identity without a stored consent', async () => {
  const gateway = await openGateway();
  const response = await getConsent(gateway);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  expect(await response.json()).toEqual({ status: 'not_set' });
});

it.each(['none', 'anonymous', 'full'])(
  'a consent read returns %s after that status was set, regardless of earlier statuses',
  async (status) => {
    const gateway = await openGateway();
    for (const previous of ['full', 'none', status]) await putConsent(gateway, consentChange({ status: previous }));
    expect(await (await getConsent(gateway)).json()).toEqual({ status });
  },
);

it('a consent read returns the consent of the percent-encoded id, and not the consent of any other id', async () => {
  const gateway = await openGateway();
  const id = fc.string({ unit: codePoint, minLength: 1, maxLength: 60 }).filter((text) => !isPlaceholder(text));
  const property = fc.asyncProperty(
    fc.uniqueArray(id, { minLength: 2, maxLength: 2, selector: (text) => text.trim() }),
    async ([first, second]) => {
      expect((await putConsent(gateway, consentChange({ anonymousId: first }))).status).toBe(204);
      const read = async (text: string) =>
        await (await getConsent(gateway, `?anonymousId=${encodeURIComponent(text)}`)).json();
      expect(await read(first!)).toEqual({ status: 'full' });
      await putConsent(gateway, consentChange({ anonymousId: second, status: 'none' }));
      expect(await read(first!)).toEqual({ status: 'full' });
    },
  );
  await fc.assert(property, { numRuns: 25 });
});

it('a consent read ignores white space around the id', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, consentChange({ anonymousId: '  visitor-1 ' }));
  expect(await (await getConsent(gateway, '?anonymousId=visitor-1+')).json()).toEqual({ status: 'full' });
});

it('a consent read returns not_set for a placeholder', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, consentChange());
  expect(await (await getConsent(gateway, '?anonymousId=undefined')).json()).toEqual({ status: 'not_set' });
});

it('a consent change does not affect other environments', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, consentChange());
  const key = gateway.keyer('other-test', 'anonymous', 'visitor-1');
  expect(await gateway.audience.people.consents.read('other-test', key)).toBeNull();
});

it('a consent change returns 204 without a body, and is logged with source, time and trace id under the identity key', async () => {
  const gateway = await openGateway();
  const startedAt = Date.now();
  const response = await putConsent(gateway, consentChange({ status: 'anonymous' }));
  expect(response.status).toBe(204);
  expect(await response.text()).toBe('');
  expect(response.headers.get('content-length')).toBeNull();
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  const identityKey = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  const [change] = sentConsents(gateway.producer);
  expect(change).toMatchObject({ environmentId: 'demo-test', status: 'anonymous', source: 'cookie-banner' });
  expect(change).toMatchObject({ identityKey, traceId: response.headers.get('x-trace-id') });
  expect(change!.receivedAt).toBeGreaterThanOrEqual(startedAt);
  const [record] = gateway.producer.sent[0]!.records;
  expect(record!.key).toEqual(Buffer.concat([Buffer.from('demo-test'), identityKey]));
  expect(record!.headers?.traceparent).toContain(response.headers.get('x-trace-id'));
});

it('a consent change returns 204 and reaches the store only after the brokers have acknowledged it', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'hold';
  let isSettled = false;
  const response = putConsent(gateway, consentChange()).finally(() => {
    isSettled = true;
  });
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  gateway.producer.mode = 'acknowledge';
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
  expect(isSettled).toBe(false);
  gateway.producer.sent[0]!.done(null);
  expect((await response).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'full' });
});

it('a consent change returns 204 but has no effect if the store already has a later change', async () => {
  const gateway = await openGateway();
  const identityKey = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  const position = { partition: 0, offset: 1_000, loggedAtMs: Date.now() };
  const later = { environmentId: 'demo-test', identityKey, status: 'none', receivedAt: Date.now() } as const;
  await gateway.audience.people.consents.apply({ ...later, position });
  expect((await putConsent(gateway, consentChange())).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'none' });
  expect(await gateway.metrics()).toContain(
    'playline_gateway_consents_total{outcome="superseded",service="gateway"} 1',
  );
});

it('a consent change received before the cut-off of an erasure returns 204 but is not stored', async () => {
  const gateway = await openGateway();
  const key = gateway.keyer('demo-test', 'anonymous', 'visitor-1');
  await gateway.audience.people.guards.fence([{ environmentId: 'demo-test', key, cutoffMs: Date.now() + 60_000 }]);
  expect((await putConsent(gateway, consentChange())).status).toBe(204);
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
});

it('a consent change may have unknown fields, escaped strings of the maximum length, or a compressed body', async () => {
  const gateway = await openGateway();
  expect((await putConsent(gateway, consentChange({ extra: { deep: [1] } }))).status).toBe(204);
  const escaped = '\\ud83c\\udfae';
  const body = `{"anonymousId":"${escaped.repeat(256)}","status":"none","source":"${escaped.repeat(128)}"}`;
  expect((await putConsent(gateway, body)).status).toBe(204);
  const zipped = await putConsent(gateway, gzipSync(JSON.stringify(consentChange())), { 'content-encoding': 'gzip' });
  expect(zipped.status).toBe(204);
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

const LONG_ID = 'x'.repeat(257);

it.each([
  ['no anonymousId', ''],
  ['a blank anonymousId', '?anonymousId=%20+'],
  ['an empty anonymousId', '?anonymousId'],
  ['an anonymousId that is too long', `?anonymousId=${LONG_ID}`],
  ['two anonymousIds', '?anonymousId=a&anonymousId=a'],
  ['two anonymousIds, one with an encoded name', '?anonymousId=a&anonymous%49d=b'],
  ['a parameter name in lower case', '?anonymousid=a'],
])('a consent read with %s returns 400', async (_name, query) => {
  const response = await getConsent(await openGateway(), query);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each(['%', '%zz', '%ff', '%ed%a0%80', '%c3'])(
  'a consent read with the id a%s, which is not percent-encoded UTF-8, returns 400',
  async (id) => {
    const response = await getConsent(await openGateway(), `?anonymousId=a${id}`);
    expect(response.status).toBe(400);
    await expectEnvelope(response, 'VALIDATION_ERROR');
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
])('a consent change with %s %j returns 400', async (field, value) => {
  const gateway = await openGateway();
  const response = await putConsent(gateway, consentChange({ [field]: value }));
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', { field });
  expect(gateway.producer.sent).toEqual([]);
});

it('a consent change with a lone surrogate returns 400', async () => {
  const body = '{"anonymousId":"a\\ud800","status":"full","source":"s"}';
  await expectEnvelope(await putConsent(await openGateway(), body), 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each([
  ['no content', '', {}, { offset: 0, line: 1, column: 1, found: 'end of body' }],
  ['invalid JSON', '{\n"status":None}', {}, { offset: 11, line: 2, column: 10, found: 'None' }],
  ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, { offset: 1, line: 1, column: 2, found: 'byte 0xFF' }],
  ['an array', '[]', {}, null],
  ['null', 'null', {}, null],
  ['an unsupported content type', '{}', { 'content-type': 'text/plain' }, { header: 'content-type' }],
  ['an unsupported encoding', '{}', { 'content-encoding': 'lzma' }, { header: 'content-encoding' }],
  ['invalid gzip data', 'x', { 'content-encoding': 'gzip' }, { header: 'content-encoding' }],
  ['too many bytes', ' '.repeat(16 * 1024 + 1), {}, { limitBytes: 16 * 1024 }],
  [
    'a decompression bomb',
    gzipSync(Buffer.alloc(1024 * 1024)),
    { 'content-encoding': 'gzip' },
    { limitBytes: 16 * 1024 },
  ],
])('a consent change with %s in the body returns 400 and frees its memory', async (_name, body, headers, details) => {
  const gateway = await openGateway();
  const response = await putConsent(gateway, body, headers as Record<string, string>);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', details);
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

it.each(['POST', 'DELETE', 'PATCH'])('%s at the consent path returns 404', async (method) => {
  const { url } = await openGateway();
  const response = await fetch(url + CONSENT, { method });
  expect(response.status).toBe(404);
  await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
});

it('a consent change returns 429 with Retry-After before the body is read while the bytes in flight are at their limit', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 });
  gateway.producer.mode = 'hold';
  const first = putConsent(gateway, consentChange());
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  const response = await putConsent(gateway, consentChange());
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('1');
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
  gateway.producer.sent[0]!.done(null);
  expect((await first).status).toBe(204);
});

it('a consent change that the brokers refuse returns 500 without internal details and is not stored', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  const response = await putConsent(gateway, consentChange());
  expect(response.status).toBe(500);
  expect(await response.clone().text()).not.toContain('broker-7');
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(gateway.logLines.join()).toContain('NOT_ENOUGH_REPLICAS');
  expect(gateway.logLines.join()).not.toContain('visitor-1');
  expect(await (await getConsent(gateway)).json()).toEqual({ status: 'not_set' });
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

it('a consent change returns 500 at the deadline without further attempts, but a change that is logged later is stored', async () => {
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  gateway.producer.mode = 'hold';
  expect((await putConsent(gateway, consentChange())).status).toBe(500);
  expect(gateway.producer.deliveries).toEqual([{ attemptsMaxMs: 100 }]);
  expect(await gateway.metrics()).not.toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  gateway.producer.sent[0]!.done(null);
  await until('the change is in the store', async () => (await (await getConsent(gateway)).text()).includes('full'));
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});

it('a consent change returns 500 while the store is unavailable, and succeeds when it is retried', async () => {
  const gateway = await openGateway();
  const { consents } = gateway.audience.people;
  let isUnavailable = true;
  const apply: typeof consents.apply = (change) =>
    isUnavailable ? Promise.reject(new Error('ECONNREFUSED')) : consents.apply(change);
  const failing = await openGateway({ audience: { consents: { apply, read: consents.read } } });
  const first = await putConsent(failing, consentChange());
  expect(first.status).toBe(500);
  await expectEnvelope(first, 'INTERNAL_SERVER_ERROR');
  expect(failing.producer.sent).toHaveLength(1);
  isUnavailable = false;
  expect((await putConsent(failing, consentChange())).status).toBe(204);
  expect(await (await getConsent(failing)).json()).toEqual({ status: 'full' });
});

it('consent operations return 500 instead of not_set after the store has lost its data', async () => {
  const gateway = await openGateway();
  gateway.audience.people.deleteEpoch();
  expect((await getConsent(gateway)).status).toBe(500);
  expect((await putConsent(gateway, consentChange())).status).toBe(500);
});

it('a consent change returns 500 until the schema id is known, but consent reads succeed', async () => {
  const gateway = await openGateway({ audience: { schemaIds: () => null } });
  expect((await putConsent(gateway, consentChange())).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect((await getConsent(gateway)).status).toBe(200);
});

it('consent operations return 500 instead of 400 if the key store is unavailable', async () => {
  const readSince = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const gateway = await openGateway({ readSince });
  expect((await getConsent(gateway)).status).toBe(500);
  expect((await putConsent(gateway, consentChange())).status).toBe(500);
});
