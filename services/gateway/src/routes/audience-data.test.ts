import { createKeyText } from '@playline/access-keys';
import { IDENTITY_TYPES, type IdentityKind } from '@playline/contracts';
import type { IdentityGraph } from '@playline/people';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { DATA, erase, SECRET_HEADER, sentErasures } from '../test/audience-calls.ts';
import { expectEnvelope, openGateway, type TestGateway } from '../test/open-gateway.ts';

const ENVIRONMENT = 'demo-test';
const hex = (keys: readonly Buffer[]) => keys.map((key) => key.toString('hex')).sort();
const keyOf = ({ keyer }: TestGateway, kind: IdentityKind, id: string) => keyer(ENVIRONMENT, kind, id);

/** Links two identities like the linker. */
async function link(gateway: TestGateway, [a, b]: [[IdentityKind, string], [IdentityKind, string]]): Promise<void> {
  const { graph } = gateway.audience.people;
  const source = { generation: 0, partition: 0 };
  const after = await graph.lastApplied(source);
  const step: Parameters<IdentityGraph['apply']>[0]['facts'][number]['steps'][number] = {
    link: 'alias',
    blocked: false,
    otherKeys: [],
    aKey: keyOf(gateway, ...a),
    aKind: a[0],
    bKey: keyOf(gateway, ...b),
    bKind: b[0],
  };
  const fact = { environmentId: ENVIRONMENT, offset: after + 1, receivedAt: 1, eventTime: 1, steps: [step] };
  await graph.apply({ ...source, after, through: after + 1, facts: [fact] });
}

it('an erasure returns 202 with the erasure id and no body, and logs the request with the environment as the key', async () => {
  const gateway = await openGateway();
  const startedAt = Date.now();
  const response = await erase(gateway);
  expect(response.status).toBe(202);
  expect(await response.text()).toBe('');
  const [request] = sentErasures(gateway.producer);
  expect(response.headers.get('x-erasure-id')?.replaceAll('-', '')).toBe(request!.erasureId.toString('hex'));
  expect(request).toMatchObject({ environmentId: ENVIRONMENT, traceId: response.headers.get('x-trace-id') });
  expect(request!.requestedAt).toBeGreaterThanOrEqual(startedAt);
  expect(request!.cutoffAt).toBe(request!.requestedAt + 2000);
  expect(gateway.producer.sent[0]!.records[0]!.key).toEqual(Buffer.from(ENVIRONMENT));
});

it.each([
  ['?userId=bob+x@example.org', 'userId=bob%20x%40example.org', 'bob x@example.org'],
  ['?userId=bob%2Bx%40example.org', 'userId=bob%2Bx%40example.org', 'bob+x@example.org'],
  ['?anonymousId=Zo%C3%AB%0D%0A%22', 'anonymousId=Zo%C3%AB%0D%0A%22', 'Zo\u00eb\r\n"'],
  [`?anonymousId=${'%F0%9F%98%80'.repeat(256)}`, `anonymousId=${'%F0%9F%98%80'.repeat(256)}`, '😀'.repeat(256)],
])('an erasure with the query %s returns the parsed identity in a header', async (query, header, id) => {
  const gateway = await openGateway();
  const response = await erase(gateway, query);
  expect(response.status).toBe(202);
  expect(response.headers.get('x-erasure-identity')).toBe(header);
  const kind = query.startsWith('?userId') ? 'untyped' : 'anonymous';
  expect(hex(sentErasures(gateway.producer)[0]!.subjectKeys as Buffer[])).toContain(
    keyOf(gateway, kind, id).toString('hex'),
  );
});

it('an erasure by anonymousId covers the anonymous identity, and an erasure by userId covers every identity type and the untyped id', async () => {
  const gateway = await openGateway();
  await erase(gateway, '?anonymousId=someone');
  await erase(gateway, '?userId=some%20one');
  const [anonymous, user] = sentErasures(gateway.producer);
  expect(hex(anonymous!.subjectKeys)).toEqual(hex([keyOf(gateway, 'anonymous', 'someone')]));
  const kinds = [...IDENTITY_TYPES, 'untyped'] as const;
  expect(hex(user!.subjectKeys)).toEqual(hex(kinds.map((kind) => keyOf(gateway, kind, 'some one'))));
});

it('an erasure request does not contain linked identities that were read after the cut-off', async () => {
  const gateway = await openGateway({ ERASURE_CLOCK_SKEW_MS: 0 });
  await link(gateway, [
    ['anonymous', 'a'],
    ['steam', 'u'],
  ]);
  await erase(gateway, '?userId=u');
  expect(sentErasures(gateway.producer)[0]!.memberKeys).toEqual([]);
});

it('an erasure request contains each linked identity once', async () => {
  const gateway = await openGateway();
  await link(gateway, [
    ['anonymous', 'a'],
    ['steam', 'u'],
  ]);
  await link(gateway, [
    ['anonymous', 'b'],
    ['steam', 'u'],
  ]);
  await link(gateway, [
    ['steam', 'u'],
    ['untyped', 'u'],
  ]);
  await link(gateway, [
    ['anonymous', 'stranger'],
    ['steam', 'other'],
  ]);
  await erase(gateway, '?userId=u');
  const [request] = sentErasures(gateway.producer);
  expect(hex(request!.memberKeys)).toEqual(hex([keyOf(gateway, 'anonymous', 'a'), keyOf(gateway, 'anonymous', 'b')]));
});

it('an erasure sets the hold before it reads the linked identities, and reads them before it publishes the request', async () => {
  const steps: string[] = [];
  const defaults = await openGateway();
  const { people } = defaults.audience;
  const gateway = await openGateway({
    audience: {
      people: {
        ...people,
        guards: {
          ...people.guards,
          putHold: async (hold) => {
            steps.push('hold');
            await people.guards.putHold(hold);
          },
        },
        graph: {
          membersOf: async (environmentId, key) => {
            expect(people.holdOf(environmentId, key)).not.toBeNull();
            steps.push(`read, ${gateway.producer.sent.length} sent`);
            return people.graph.membersOf(environmentId, key);
          },
        },
      },
    },
  });
  expect((await erase(gateway)).status).toBe(202);
  expect(steps).toEqual(['hold', 'read, 0 sent']);
  expect(gateway.producer.sent).toHaveLength(1);
});

it('an erasure returns 202 only after the brokers have acknowledged the request, and its hold no longer lapses', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'hold';
  let isSettled = false;
  const response = erase(gateway).finally(() => {
    isSettled = true;
  });
  await until('the request is sent', () => gateway.producer.sent.length === 1);
  expect(isSettled).toBe(false);
  gateway.producer.sent[0]!.done(null);
  expect((await response).status).toBe(202);
  const [request] = sentErasures(gateway.producer);
  expect(await gateway.audience.people.guards.dropLapsedHolds(Number.MAX_SAFE_INTEGER)).toBe(0);
  const hold = gateway.audience.people.holdOf(ENVIRONMENT, keyOf(gateway, 'anonymous', 'visitor-1'));
  expect(hold).toBe(request!.cutoffAt);
});

it('an erasure returns 202 even if the hold cannot be confirmed, because the request is on the log', async () => {
  const defaults = await openGateway();
  const { people } = defaults.audience;
  const confirmHold = () => Promise.reject(new Error('ECONNRESET'));
  const guards = { ...people.guards, confirmHold };
  const gateway = await openGateway({ audience: { people: { ...people, guards } } });
  expect((await erase(gateway)).status).toBe(202);
  expect(gateway.logLines.join()).toContain('cannot confirm hold');
});

const LONG_ID = '%F0%9F%8E%AE'.repeat(257);

it.each([
  ['neither identifier', '', null],
  ['both identifiers', '?anonymousId=a&userId=b', null],
  ['both identifiers, one of them blank', '?anonymousId=a&userId=', null],
  ['a blank anonymousId', '?anonymousId=%20', { field: 'anonymousId' }],
  ['a blank userId', '?userId', { field: 'userId' }],
  ['an anonymousId that is too long', `?anonymousId=${LONG_ID}`, { field: 'anonymousId' }],
  ['a userId that is too long', `?userId=${LONG_ID}`, { field: 'userId' }],
  ['a placeholder as userId', '?userId=N/A', { field: 'userId' }],
  ['a placeholder as anonymousId', '?anonymousId=%20null', { field: 'anonymousId' }],
  ['one identifier twice', '?userId=a&userId=a', { field: 'userId' }],
  ['invalid percent-encoding', '?userId=%c3', null],
])('an erasure with %s returns 400, sets no hold and logs nothing', async (_name, query, details) => {
  const gateway = await openGateway();
  const response = await erase(gateway, query);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR', details);
  expect(gateway.producer.sent).toEqual([]);
  expect(await gateway.audience.people.guards.dropLapsedHolds(Number.MAX_SAFE_INTEGER)).toBe(0);
});

const owner = { projectId: 'p', environmentId: 'demo-test', environment: 'production', kind: 'secret' } as const;

it('an erasure with a malformed, unknown or publishable key returns 401', async () => {
  const gateway = await openGateway();
  const unknown = createKeyText('svcapik', owner);
  for (const secretKey of ['nonsense', unknown, gateway.key, `${gateway.secretKey}, ${gateway.secretKey}`]) {
    const response = await erase({ ...gateway, secretKey });
    expect(response.status).toBe(401);
    await expectEnvelope(response, 'UNAUTHORISED_REQUEST', { header: SECRET_HEADER });
  }
  expect(gateway.producer.sent).toEqual([]);
});

it('an erasure checks the key before the identifiers', async () => {
  const gateway = await openGateway();
  expect((await erase({ ...gateway, secretKey: 'nonsense' }, '')).status).toBe(401);
});

it.each(['GET', 'POST', 'PUT', 'PATCH', 'OPTIONS'])(
  '%s at the erasure path returns 404 without CORS headers',
  async (method) => {
    const { url } = await openGateway();
    const response = await fetch(url + DATA, { method, headers: { origin: 'https://game.test' } });
    expect(response.status).toBe(404);
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    await expectEnvelope(response, 'RESOURCE_NOT_FOUND');
  },
);

const readCutoff = ({ audience, keyer }: TestGateway) =>
  audience.people.holdOf('demo-test', keyer('demo-test', 'anonymous', 'visitor-1'));

it('an erasure that the brokers refuse returns 500 without internal details, and its hold lapses', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  const response = await erase(gateway);
  expect(response.status).toBe(500);
  expect(await response.clone().text()).not.toContain('broker-7');
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  // The hold remains for a minute, because the request may be on the log anyway.
  expect(readCutoff(gateway)).not.toBeNull();
  expect(await gateway.audience.people.guards.dropLapsedHolds(Date.now() + 59_000)).toBe(0);
  expect(await gateway.audience.people.guards.dropLapsedHolds(Date.now() + 60_000)).toBe(1);
  expect(readCutoff(gateway)).toBeNull();
});

it('an erasure returns 500 at the deadline, but a request that is logged later confirms its hold', async () => {
  const defaults = await openGateway();
  const { people } = defaults.audience;
  let isConfirmed = false;
  const confirmHold: typeof people.guards.confirmHold = async (name) => {
    isConfirmed = await people.guards.confirmHold(name);
    return isConfirmed;
  };
  const guards = { ...people.guards, confirmHold };
  const gateway = await openGateway({ PUBLISH_DEADLINE_MS: 100, audience: { people: { ...people, guards } } });
  gateway.producer.mode = 'hold';
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.deliveries).toEqual([{ attemptsMaxMs: 100 }]);
  gateway.producer.sent[0]!.done(null);
  await until('the hold is confirmed', () => isConfirmed);
  expect(await people.guards.dropLapsedHolds(Number.MAX_SAFE_INTEGER)).toBe(0);
});

it('an erasure returns 500 and publishes nothing if the hold cannot be set', async () => {
  const defaults = await openGateway();
  const putHold = () => Promise.reject(new Error('ECONNREFUSED'));
  const { people } = defaults.audience;
  const gateway = await openGateway({ audience: { people: { ...people, guards: { ...people.guards, putHold } } } });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
});

it('an erasure returns 500, publishes nothing and releases its hold if the linked identities cannot be read', async () => {
  const defaults = await openGateway();
  const membersOf = () => Promise.reject(new Error('ECONNREFUSED'));
  const gateway = await openGateway({ audience: { people: { ...defaults.audience.people, graph: { membersOf } } } });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect(readCutoff(gateway)).toBeNull();
});

it('an erasure returns 500, sets no hold and publishes nothing while the identity graph is missing', async () => {
  const defaults = await openGateway();
  const people = { ...defaults.audience.people, readEpoch: async () => null };
  const gateway = await openGateway({ audience: { people } });
  expect((await erase(gateway)).status).toBe(500);
  expect(gateway.producer.sent).toEqual([]);
  expect(readCutoff(gateway)).toBeNull();
});

it('an erasure returns 500 until the schema id is known', async () => {
  const gateway = await openGateway({ audience: { schemaIds: () => null } });
  expect((await erase(gateway)).status).toBe(500);
  expect(readCutoff(gateway)).toBeNull();
});

it('an erasure returns 500 instead of 401 if the key store is unavailable', async () => {
  const gateway = await openGateway({ readSince: () => Promise.reject(new Error('connect ECONNREFUSED')) });
  expect((await erase(gateway)).status).toBe(500);
});

it('the log lines of a failed erasure do not contain the subject', async () => {
  const gateway = await openGateway();
  gateway.producer.mode = 'fail';
  await erase(gateway, '?userId=someone-private');
  await until('the error is logged', () => gateway.logLines.length > 0);
  expect(gateway.logLines.join()).not.toContain('someone-private');
});
