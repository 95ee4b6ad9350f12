// Contract, consent, rows "Previous state" and "History"; ingest, row "Ingest and stored consent".
// Left out of row "History": "until the identity is erased", which only an eraser could show.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, CONSENT_PATH, expectAccepted, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { consentsOnLog } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '5000', RATE_LIMIT_CONSENTS_BURST: '5000' });
}, START_MAX_MS);
afterAll(() => client.close());

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
const headers = () => ({
  'content-type': 'application/json',
  'x-service-publishable-key': client.publishableKey,
});

async function write(body: Change): Promise<void> {
  const answer = await client.request(CONSENT_PATH, { method: 'PUT', headers: headers(), body: JSON.stringify(body) });
  expect(answer.status).toBe(204);
}

async function statusOf({ anonymousId }: Change): Promise<string> {
  const answer = await client.request(`${CONSENT_PATH}?anonymousId=${anonymousId}`, { headers: headers() });
  expect(answer.status).toBe(200);
  return answer.body.status;
}

it.each(STATUSES.flatMap((from) => STATUSES.map((to) => [from, to] as const)))(
  'a consent may change to any other, and a GET after the 204 sees it: %s to %s',
  async (from, to) => {
    const first = change({ status: from });
    await write(first);
    expect(await statusOf(first)).toBe(from);
    await write({ ...first, status: to });
    expect(await statusOf(first)).toBe(to);
  },
);

it('of consent changes at the same time, the one with the later offset wins', async () => {
  const sets = Array.from({ length: 10 }, () => {
    const first = change();
    return { first, all: [...STATUSES, ...STATUSES].map((status) => ({ ...first, status })) };
  });
  await Promise.all(sets.flatMap(({ all }) => all.map(write)));
  for (const { first, all } of sets) {
    const logged = await consentsOnLog(client.topicPrefix, first.source);
    expect(logged).toHaveLength(all.length);
    expect(new Set(logged.map(({ partition }) => partition)).size).toBe(1);
    expect(await statusOf(first)).toBe(logged.at(-1)?.status);
  }
});

it('in the history of consent, every change is kept with its source and time, in the order in which they were made', async () => {
  const first = change({ status: 'full' });
  const times = [Date.now()];
  for (const status of ['full', 'none', 'full']) {
    await write({ ...first, status });
    times.push(Date.now());
  }
  const logged = await consentsOnLog(client.topicPrefix, first.source);
  expect(logged.map(({ status, environmentId }) => [status, environmentId])).toEqual(
    ['full', 'none', 'full'].map((status) => [status, client.environmentId]),
  );
  for (const [at, { receivedAt }] of logged.entries()) {
    expect(receivedAt).toBeGreaterThanOrEqual(times[at] ?? 0);
    expect(receivedAt).toBeLessThanOrEqual(times[at + 1] ?? 0);
  }
});

it.each(STATUSES)('ingest is not refused because of a stored consent of %s', async (status) => {
  const stored = change({ status });
  await write(stored);
  expectAccepted(await client.send(track({ anonymousId: stored.anonymousId, consentLevel: 'none' })));
});
