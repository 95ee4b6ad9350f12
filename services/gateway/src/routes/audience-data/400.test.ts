import { expect, it } from 'vitest';
import { DATA, erase, SECRET_HEADER } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

const LONG_ID = '%F0%9F%8E%AE'.repeat(257);

it('a 400 to an erasure request answers a missing key and names the header', async () => {
  const { url } = await openGateway();
  for (const headers of [{}, { [SECRET_HEADER]: '' }]) {
    const answer = await fetch(`${url}${DATA}?anonymousId=a`, { method: 'DELETE', headers });
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', { header: SECRET_HEADER });
  }
});

it.each([
  ['neither identifier', '', null],
  ['both', '?anonymousId=a&userId=b', null],
  ['both, one of them blank', '?anonymousId=a&userId=', null],
  ['a blank anonymousId', '?anonymousId=%20', { field: 'anonymousId' }],
  ['a blank userId', '?userId', { field: 'userId' }],
  ['an anonymousId that is too long', `?anonymousId=${LONG_ID}`, { field: 'anonymousId' }],
  ['a userId that is too long', `?userId=${LONG_ID}`, { field: 'userId' }],
  ['a placeholder as userId', '?userId=N/A', { field: 'userId' }],
  ['a placeholder as anonymousId', '?anonymousId=%20null', { field: 'anonymousId' }],
  ['one identifier twice', '?userId=a&userId=a', { field: 'userId' }],
  ['broken percent-encoding', '?userId=%c3', null],
])('a 400 to an erasure request answers %s, and holds and records nothing', async (_name, query, details) => {
  const gateway = await openGateway();
  const answer = await erase(gateway, query);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', details);
  expect(gateway.producer.sent).toEqual([]);
  expect(await gateway.audience.people.guards.dropLapsedHolds(Number.MAX_SAFE_INTEGER)).toBe(0);
});

it('a 400 to an erasure request takes 256 emoji', async () => {
  const answer = await erase(await openGateway(), `?userId=${'%F0%9F%8E%AE'.repeat(256)}`);
  expect(answer.status).toBe(202);
});
