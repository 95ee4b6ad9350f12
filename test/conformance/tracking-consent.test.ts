// Contract, "Consent".
// Rows "Previous state" and "History" are in consent-changes.test.ts.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, CONSENT_PATH, expectEnvelope } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const headers = (key = client.publishableKey) => ({ 'content-type': 'application/json', [HEADER]: key });
const read = (anonymousId: string) =>
  client.request(`${CONSENT_PATH}?anonymousId=${encodeURIComponent(anonymousId)}`, { headers: headers() });
const write = (body: unknown) =>
  client.request(CONSENT_PATH, { method: 'PUT', headers: headers(), body: JSON.stringify(body) });
const consent = (extra = {}) => ({ anonymousId: `anon-${randomUUID()}`, status: 'full', source: 'banner', ...extra });

function expectWritten(answer: Answer): void {
  expect(answer.status).toBe(204);
  expect(answer.body).toBeNull();
}

async function expectStatus(anonymousId: string, status: string): Promise<void> {
  const answer = await read(anonymousId);
  expect(answer.body).toEqual({ status });
  expect(answer.status).toBe(200);
}

it('GET for an unknown anonymousId is 200 with status not_set', async () => {
  await expectStatus(`anon-${randomUUID()}`, 'not_set');
});

const calls = (key: string | null) => {
  const { [HEADER]: _, ...without } = headers();
  const sent = key === null ? without : headers(key);
  const body = JSON.stringify(consent());
  return [
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: sent }),
    client.request(CONSENT_PATH, { method: 'PUT', headers: sent, body }),
  ];
};

it.each<[string, () => string | null]>([
  ['missing', () => null],
  ['malformed', () => 'hello'],
  ['unknown', () => client.unknownKey],
  ['secret', () => client.secretKey],
  ['refreshed away', () => client.endedPublishableKey],
])(
  'the consent operations: a key that is %s: 400 VALIDATION_ERROR, details.header names the header',
  async (_, key) => {
    for (const answer of await Promise.all(calls(key()))) {
      expectEnvelope(answer, 400, 'VALIDATION_ERROR');
      expect(answer.body.details).toMatchObject({ header: HEADER });
    }
  },
);

it.each([undefined, null, '', ' \t', 7])('an anonymousId in PUT with %j: 400 VALIDATION_ERROR', async (anonymousId) => {
  expectEnvelope(await write(consent({ anonymousId })), 400, 'VALIDATION_ERROR');
});

it.each(['', '?anonymousId', '?anonymousId=', '?anonymousId=%20'])(
  'an anonymousId in GET with %j: 400 VALIDATION_ERROR',
  async (query) => {
    expectEnvelope(await client.request(CONSENT_PATH + query, { headers: headers() }), 400, 'VALIDATION_ERROR');
  },
);

it('an anonymousId in 256 code points are accepted, 257 are 400, on GET and PUT', async () => {
  const longest = '😀'.repeat(256);
  expectWritten(await write(consent({ anonymousId: longest })));
  await expectStatus(longest, 'full');
  expectEnvelope(await write(consent({ anonymousId: 'x'.repeat(257) })), 400, 'VALIDATION_ERROR');
  expectEnvelope(await read('x'.repeat(257)), 400, 'VALIDATION_ERROR');
});

it.each(['not_set', 'FULL', '', null, undefined, 1])('PUT of status %j: 400 VALIDATION_ERROR', async (status) => {
  expectEnvelope(await write(consent({ status })), 400, 'VALIDATION_ERROR');
});

it.each([undefined, null, 1, 'x'.repeat(129)])('PUT with source %j: 400 VALIDATION_ERROR', async (source) => {
  expectEnvelope(await write(consent({ source })), 400, 'VALIDATION_ERROR');
});

it('a source of 128 code points is accepted', async () => {
  expectWritten(await write(consent({ source: 'é'.repeat(128) })));
});

it(
  'too many consent calls get a 429 envelope with Retry-After',
  async () => {
    const limited = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '3' });
    try {
      // More concurrent calls than the bucket holds and the rate refills.
      const calls = Array.from({ length: 60 }, () =>
        limited.request(`${CONSENT_PATH}?anonymousId=a`, { headers: { [HEADER]: limited.publishableKey } }),
      );
      const refused = (await Promise.all(calls)).filter(({ status }) => status !== 200);
      expect(refused.length).toBeGreaterThan(0);
      for (const answer of refused) {
        expectEnvelope(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
        expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      }
    } finally {
      await limited.close();
    }
  },
  START_MAX_MS,
);

it('too many consent calls get a is in the OpenAPI of both operations', async () => {
  const { paths } = (await client.request('/openapi.json')).body;
  for (const method of ['get', 'put'])
    expect(paths[CONSENT_PATH][method].responses['429'].headers, method).toHaveProperty('Retry-After');
});
