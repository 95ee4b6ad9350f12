import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { erase } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway, type TestGateway } from '../../test/open-gateway.ts';

const cutoffOf = ({ audience, keyer }: TestGateway) =>
  audience.people.holdOf('demo-test', keyer('demo-test', 'anonymous', 'visitor-1'));

it('a 500 to an erasure request answers a request that the brokers refuse without leaking the reason, and leaves its hold to lapse', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  const answer = await erase(gateway);
  expect(answer.status).toBe(500);
  expect(await answer.clone().text()).not.toContain('broker-7');
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  // The hold stays, because the request may be on the log all the same.
  expect(cutoffOf(gateway)).not.toBeNull();
  expect(await gateway.audience.people.guards.dropLapsedHolds(Date.now() + 59_000)).toBe(0);
  expect(await gateway.audience.people.guards.dropLapsedHolds(Date.now() + 60_000)).toBe(1);
  expect(cutoffOf(gateway)).toBeNull();
});

it('a 500 to an erasure request answers at the deadline; a request that reaches the log later keeps its hold', async () => {
  const inner = await openGateway();
  const { people } = inner.audience;
  let confirmed = false;
  const confirmHold: typeof people.guards.confirmHold = async (name) => {
    confirmed = await people.guards.confirmHold(name);
    return confirmed;
  };
  const guards = { ...people.guards, confirmHold };
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100, audience: { people: { ...people, guards } } });
  gateway.producer.mode = 'hold';
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.deliveries).toEqual([{ attemptsMaxMs: 100 }]);
  gateway.producer.sent[0]!.done(null);
  await until('the hold is confirmed', () => confirmed);
  expect(await people.guards.dropLapsedHolds(Number.MAX_SAFE_INTEGER)).toBe(0);
});

it('a 500 to an erasure request answers when the hold cannot be put, and publishes nothing', async () => {
  const inner = await openGateway();
  const putHold = () => Promise.reject(new Error('ECONNREFUSED'));
  const { people } = inner.audience;
  const gateway = await openGateway({
    audience: { people: { ...people, guards: { ...people.guards, putHold } } },
  });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
});

it('a 500 to an erasure request answers when the linked identities cannot be read, publishes nothing and releases its hold', async () => {
  const inner = await openGateway();
  const membersOf = () => Promise.reject(new Error('ECONNREFUSED'));
  const gateway = await openGateway({ audience: { people: { ...inner.audience.people, graph: { membersOf } } } });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect(cutoffOf(gateway)).toBeNull();
});

it('a 500 to an erasure request answers while the identity graph is lost or rebuilt, puts no hold and publishes nothing', async () => {
  const inner = await openGateway();
  const people = { ...inner.audience.people, readEpoch: async () => null };
  const gateway = await openGateway({ audience: { people } });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect(cutoffOf(gateway)).toBeNull();
});

it('a 500 to an erasure request answers while the id of the schema is not known', async () => {
  const gateway = await openGateway({ audience: { schemaIds: () => null } });
  expect((await erase(gateway)).status).toBe(500);
  expect(cutoffOf(gateway)).toBeNull();
});

it('a 500 to an erasure request answers, and never 401, when the key store cannot answer', async () => {
  const gateway = await openGateway({ readSince: () => Promise.reject(new Error('connect ECONNREFUSED')) });
  expect((await erase(gateway)).status).toBe(500);
});

it('a 500 to an erasure request writes nothing about the subject to the log', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  await erase(gateway, '?userId=someone-private');
  await until('the fault is logged', () => gateway.logLines.length > 0);
  expect(gateway.logLines.join()).not.toContain('someone-private');
});
