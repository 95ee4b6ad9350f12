import { gzipSync } from 'node:zlib';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { getConsent, putConsent, sentConsents, wanted } from '../../test/audience-calls.ts';
import { openGateway } from '../../test/open-gateway.ts';

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
  const { environmentId, identityKey } = {
    environmentId: 'demo-test',
    identityKey: gateway.keyer('demo-test', 'anonymous', 'visitor-1'),
  };
  const position = { partition: 0, offset: 1_000, loggedAtMs: Date.now() };
  await gateway.audience.people.consents.apply({
    environmentId,
    identityKey,
    status: 'none',
    receivedAt: Date.now(),
    position: position,
  });
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

it.each([['members that it does not know', { extra: { deep: [1] } }]])(
  'a 204 to a consent change takes %s',
  async (_name, fields) => {
    const gateway = await openGateway();
    expect((await putConsent(gateway, wanted(fields))).status).toBe(204);
  },
);

it('a 204 to a consent change takes the longest change with every character escaped, and a compressed one', async () => {
  const gateway = await openGateway();
  const escaped = '\\ud83c\\udfae';
  const body = `{"anonymousId":"${escaped.repeat(256)}","status":"none","source":"${escaped.repeat(128)}"}`;
  expect((await putConsent(gateway, body)).status).toBe(204);
  const zipped = await putConsent(gateway, gzipSync(JSON.stringify(wanted())), { 'content-encoding': 'gzip' });
  expect(zipped.status).toBe(204);
});

it('a 204 to a consent change frees the capacity of the body', async () => {
  const gateway = await openGateway();
  await putConsent(gateway, wanted());
  expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
});
