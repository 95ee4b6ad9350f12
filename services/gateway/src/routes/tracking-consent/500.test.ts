import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { getConsent, putConsent, wanted } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

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

it('a 500 of the consent operations is the answer to a change for which no attempt begins afterwards, so that it does not overtake a later one', async () => {
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  gateway.producer.mode = 'hold';
  expect((await putConsent(gateway, wanted())).status).toBe(500);
  expect(gateway.producer.deliveries).toEqual([{ attemptsMaxMs: 100 }]);
});

it('a 500 of the consent operations answers at the deadline; a change that reaches the log later is in the store all the same', async () => {
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100 });
  gateway.producer.mode = 'hold';
  expect((await putConsent(gateway, wanted())).status).toBe(500);
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
