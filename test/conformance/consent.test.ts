// Contract, "Consent", and the row "Consent" in "Rules of a batch". rate-limit.test.ts tests 429. The deletion of
// consents by an erasure is not tested here, because it needs an eraser.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, CONSENT_PATH, expectAccepted, expectEnvelope, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { consentsInLog } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '5000', RATE_LIMIT_CONSENTS_BURST: '5000' });
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const headers = (key: string | null): Record<string, string> => ({
  'content-type': 'application/json',
  ...(key === null ? {} : { [HEADER]: key }),
});
const read = (anonymousId: string, key: string | null = client.publishableKey) =>
  client.request(`${CONSENT_PATH}?anonymousId=${encodeURIComponent(anonymousId)}`, { headers: headers(key) });
const write = (extra: object = {}, key: string | null = client.publishableKey) => {
  const consent = { anonymousId: `anon-${randomUUID()}`, status: 'full', source: 'banner', ...extra };
  return client.request(CONSENT_PATH, { method: 'PUT', headers: headers(key), body: JSON.stringify(consent) });
};

it('a GET with an unknown anonymousId returns 200 with the status not_set', async () => {
  expect(await read(`anon-${randomUUID()}`)).toMatchObject({ status: 200, body: { status: 'not_set' } });
});

it.each<[string, () => string | null]>([
  ['missing', () => null],
  ['malformed', () => 'hello'],
  ['unknown', () => client.unknownKey],
  ['secret', () => client.secretKey],
  ['replaced', () => client.replacedPublishableKey],
])('a consent request with a %s key returns 400 VALIDATION_ERROR with the header in details.header', async (_, key) => {
  for (const response of [await read('a', key()), await write({}, key())]) {
    expectEnvelope(response, 400, 'VALIDATION_ERROR');
    expect(response.body.details).toMatchObject({ header: HEADER });
  }
});

it.each([
  { anonymousId: ' \t' },
  { anonymousId: 'x'.repeat(257) },
  { status: 'not_set' },
  { status: null },
  { source: null },
  { source: 'x'.repeat(129) },
])('a consent change with %j returns 400 VALIDATION_ERROR', async (extra) => {
  expectEnvelope(await write(extra), 400, 'VALIDATION_ERROR');
});

it.each([' ', 'x'.repeat(257)])('a GET with the anonymousId %j returns 400 VALIDATION_ERROR', async (anonymousId) => {
  expectEnvelope(await read(anonymousId), 400, 'VALIDATION_ERROR');
});

it('an anonymousId of 256 code points and a source of 128 code points are accepted', async () => {
  const anonymousId = '😀'.repeat(256);
  expect(await write({ anonymousId, source: 'é'.repeat(128) })).toMatchObject({ status: 204, body: null });
  expect((await read(anonymousId)).body).toEqual({ status: 'full' });
});

const STATUSES = ['none', 'anonymous', 'full'];

interface Change {
  anonymousId: string;
  status: string;
  source: string;
}
const change = (extra: Partial<Change> = {}): Change => ({
  anonymousId: `anon-${randomUUID()}`,
  status: 'full',
  source: `source-${randomUUID()}`,
  ...extra,
});
const store = async (stored: Change) => expect((await write(stored)).status).toBe(204);

async function statusOf({ anonymousId }: Change): Promise<string> {
  const response = await read(anonymousId);
  expect(response.status).toBe(200);
  return response.body.status;
}

it.each(STATUSES.flatMap((from) => STATUSES.map((to) => [from, to] as const)))(
  'a consent can change from %s to %s, and a GET after the 204 returns the new status',
  async (from, to) => {
    const first = change({ status: from });
    await store(first);
    expect(await statusOf(first)).toBe(from);
    await store({ ...first, status: to });
    expect(await statusOf(first)).toBe(to);
  },
);

it('among concurrent consent changes, the change with the highest offset wins', async () => {
  const sets = Array.from({ length: 10 }, () => {
    const first = change();
    return { first, all: [...STATUSES, ...STATUSES].map((status) => ({ ...first, status })) };
  });
  await Promise.all(sets.flatMap(({ all }) => all.map(store)));
  for (const { first, all } of sets) {
    const logged = await consentsInLog(client.topicPrefix, first.source);
    expect(logged).toHaveLength(all.length);
    expect(new Set(logged.map(({ partition }) => partition)).size).toBe(1);
    expect(await statusOf(first)).toBe(logged.at(-1)?.status);
  }
});

it('the log contains every consent change with its source and time, in the order of the requests', async () => {
  const first = change({ status: 'full' });
  const times = [Date.now()];
  for (const status of ['full', 'none', 'full']) {
    await store({ ...first, status });
    times.push(Date.now());
  }
  const logged = await consentsInLog(client.topicPrefix, first.source);
  expect(logged.map(({ status, environmentId }) => [status, environmentId])).toEqual(
    ['full', 'none', 'full'].map((status) => [status, client.environmentId]),
  );
  for (const [index, { receivedAt }] of logged.entries()) {
    expect(receivedAt).toBeGreaterThanOrEqual(times[index] ?? 0);
    expect(receivedAt).toBeLessThanOrEqual(times[index + 1] ?? 0);
  }
});

it.each(STATUSES)('ingest accepts messages of an identity with the stored consent %s', async (status) => {
  const stored = change({ status });
  await store(stored);
  expectAccepted(await client.send(track({ anonymousId: stored.anonymousId, consentLevel: 'none' })));
});
