import { createKey, type KeyKind, minuteOf, revokeKey } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { afterEach, expect, it } from 'vitest';
import type { OpenDeadLetters, WriterDelay } from '../../pipeline-status.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

const DAY_MS = 86_400_000;
let portal: TestPortal | undefined;
afterEach(() => portal?.close());

async function open() {
  const usage = createMemoryKeyUsage();
  const pipeline: { delay: WriterDelay; deadLetters: OpenDeadLetters; isDown: boolean } = {
    delay: { waiting: 0, oldestMs: null },
    deadLetters: { total: 0, byEnvironment: new Map(), isComplete: true },
    isDown: false,
  };
  const fail = () => Promise.reject(new Error('connection lost'));
  portal = await openPortal({
    usage,
    pipeline: {
      writerDelay: async () => (pipeline.isDown ? fail() : pipeline.delay),
      openDeadLetters: async () => (pipeline.isDown ? fail() : pipeline.deadLetters),
    },
  });
  const project = await portal.addProject('Sky');
  const path = `/projects/${project.id}/alerts`;
  const browser = await portal.signIn({ project, role: 'analyst' });
  const [environment] = project.environments;
  const owner = { projectId: project.id, environmentId: environment!.id, environment: environment!.kind };
  const store = portal.parts.keys.storeFor({ changedBy: 'ada', requestId: 'r' });
  const addKey = async (kind: KeyKind, days: number) => {
    const { record } = await createKey({ store, prefix: 'svcapik' }, { ...owner, kind, name: `a ${kind} key` });
    await store.change((all) => {
      const created = all.find(({ live }) => live?.keyId === record.keyId)!;
      return { ...created, live: { ...created.live!, createdAt: Date.now() - days * DAY_MS } };
    });
    return record;
  };
  const count = (accepted: number, rejected: number) =>
    usage.add({
      minuteAt: minuteOf(Date.now()),
      keys: [],
      environments: [{ environmentId: owner.environmentId, accepted, rejected }],
    });
  const use = (keyId: string, { lastUsedAt = Date.now(), uses = 1, refusals = 0 }) =>
    usage.add({
      minuteAt: minuteOf(Date.now()),
      keys: [{ keyId, uses, refusals, messages: 0, lastUsedAt, lastRefusal: null }],
      environments: [],
    });
  const { portal: _, ...rest } = { portal, pipeline, project, path, browser, store, addKey, count, use, owner };
  return rest;
}

const readAlertCount = (text: string) => /<dt>Alerts<\/dt><dd><a [^>]*>([^<]*)</.exec(text)?.[1];

it('the alerts page shows no alerts for values below their thresholds', async () => {
  const { browser, path, addKey, count, use } = await open();
  await addKey('secret', 89);
  const { keyId } = await addKey('publishable', 400);
  await use(keyId, { uses: 1_000, refusals: 19 });
  // Too few messages for an alert.
  await count(10, 10);
  expect((await browser.get(path)).text).toContain('No alerts');
  await count(370, 10);
  expect((await browser.get(path)).text).toContain('No alerts');
  expect(readAlertCount((await browser.get('/')).text)).toBe('none');
});

it('the alerts page shows rejections, delay, dead letters, unused secret keys and refused keys', async () => {
  const { browser, path, pipeline, addKey, count, use, owner } = await open();
  await addKey('secret', 91);
  const { keyId } = await addKey('publishable', 1);
  await use(keyId, { uses: 100, refusals: 20 });
  await count(900, 100);
  pipeline.delay = { waiting: 5, oldestMs: Date.now() - 120_500 };
  pipeline.deadLetters = { ...pipeline.deadLetters, byEnvironment: new Map([[owner.environmentId, 3]]) };
  const { text } = await browser.get(path);
  for (const expected of [
    ...['10.0\u00a0% of 1\u202f000\u00a0messages', '2\u00a0min; 5 waiting', '3\u00a0dead'],
    ...[/a secret key \S+: unused for 91\u00a0d/, /a publishable key \S+: 20 of 100\u00a0requests refused/],
  ])
    expect(text).toMatch(expected);
  expect(readAlertCount((await browser.get('/')).text)).toBe('5');
});

it('an unused secret key causes an alert until it is revoked', async () => {
  const { browser, path, addKey, use, store, owner } = await open();
  const { keyId } = await addKey('secret', 400);
  await use(keyId, { lastUsedAt: Date.now() - 95 * DAY_MS });
  expect((await browser.get(path)).text).toContain('unused for 95\u00a0d');
  await revokeKey({ store }, { ...owner, kind: 'secret' });
  expect((await browser.get(path)).text).toContain('No alerts');
});

it('the alerts page names the checks that are unavailable', async () => {
  const { browser, path, pipeline } = await open();
  pipeline.isDown = true;
  const { status, text } = await browser.get(path);
  expect([status, text.includes('All values are below')]).toEqual([200, false]);
  expect(text).toContain('Currently unavailable: Visible delay, Dead letters.');
  expect(readAlertCount((await browser.get('/')).text)).toBe('not available');
});
