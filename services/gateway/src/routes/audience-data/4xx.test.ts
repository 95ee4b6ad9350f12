import { createKeyText } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { DATA, erase, SECRET_HEADER } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

const LONG_ID = '%F0%9F%8E%AE'.repeat(257);

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

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'secret' } as const;

it('a 401 to an erasure request answers a malformed key, an unknown one and a publishable one', async () => {
  const gateway = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const secretKey of ['nonsense', unknown, gateway.key, `${gateway.secretKey}, ${gateway.secretKey}`]) {
    const answer = await erase({ ...gateway, secretKey });
    expect(answer.status).toBe(401);
    await expectEnvelope(answer, 'UNAUTHORISED_REQUEST', { header: SECRET_HEADER });
  }
  expect(gateway.producer.sent).toEqual([]);
});

it('a 401 to an erasure request comes before any check of the identifiers', async () => {
  const gateway = await openGateway();
  expect((await erase({ ...gateway, secretKey: 'nonsense' }, '')).status).toBe(401);
});

it.each(['GET', 'POST', 'PUT', 'PATCH', 'OPTIONS'])(
  'a 404 at the erasure path answers %s, without CORS headers',
  async (method) => {
    const { url } = await openGateway();
    const answer = await fetch(url + DATA, { method, headers: { origin: 'https://game.test' } });
    expect(answer.status).toBe(404);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
  },
);
