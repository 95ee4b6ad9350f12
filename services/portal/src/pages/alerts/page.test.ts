import { createKey, type KeyKind, minuteOf, revokeKey } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { afterEach, describe, expect, it } from 'vitest';
import type { OpenDeadLetters, WriterDelay } from '../../pipeline-status.ts';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';

const DAY_MS = 86_400_000;
let portal: TestPortal | undefined;
afterEach(() => portal?.close());

async function open() {
  const usage = createMemoryKeyUsage();
  const told: { delay: WriterDelay; letters: OpenDeadLetters; isAway: boolean } = {
    delay: { waiting: 0, oldestMs: null },
    letters: { total: 0, byEnvironment: new Map(), isWhole: true },
    isAway: false,
  };
  const away = () => Promise.reject(new Error('away'));
  portal = await openPortal({
    usage,
    pipeline: {
      writerDelay: async () => (told.isAway ? away() : told.delay),
      openDeadLetters: async () => (told.isAway ? away() : told.letters),
    },
  });
  const project = await portal.addProject('Sky');
  const path = `/projects/${project.id}/alerts`;
  const browser = await portal.signIn({ project, role: 'analyst' });
  const [environment] = project.environments;
  const owner = { projectId: project.id, environmentId: environment!.id, environment: environment!.kind };
  const store = portal.parts.keys.changedBy({ changedBy: 'ada', requestId: 'r' });
  /** A key that was made so many days ago. */
  const makeKey = async (kind: KeyKind, days: number) => {
    const { record } = await createKey({ store, prefix: 'svcapik' }, { ...owner, kind, name: `a ${kind} one` });
    await store.change((all) => {
      const made = all.find(({ live }) => live?.keyId === record.keyId)!;
      return { ...made, live: { ...made.live!, createdAt: Date.now() - days * DAY_MS } };
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
      keys: [{ keyId, uses, refusals, lastUsedAt, lastRefusal: null }],
      environments: [],
    });
  const { portal: _, ...rest } = { portal, told, project, path, browser, store, makeKey, count, use, owner };
  return rest;
}

const numberOnHome = (text: string) => /<dt>Alerts<\/dt><dd><a [^>]*>([^<]*)</.exec(text)?.[1];

describe('alerts of a project', () => {
  it('are none where all is within its bounds, on the page and on that of projects', async () => {
    const { browser, path, makeKey, count, use } = await open();
    await makeKey('secret', 89);
    const { keyId } = await makeKey('publishable', 400);
    await use(keyId, { uses: 1_000, refusals: 19 });
    // A share of few messages says nothing, and the bound itself is not above it.
    await count(10, 10);
    expect((await browser.get(path)).text).toContain('No alert');
    await count(370, 10);
    expect((await browser.get(path)).text).toContain('No alert');
    expect(numberOnHome((await browser.get('/')).text)).toBe('none');
  });

  it('tell of rejections, the delay, dead letters, a secret key that nobody uses, and a key that is refused', async () => {
    const { browser, path, told, makeKey, count, use, owner } = await open();
    await makeKey('secret', 91);
    const { keyId } = await makeKey('publishable', 1);
    await use(keyId, { uses: 100, refusals: 20 });
    await count(900, 100);
    told.delay = { waiting: 5, oldestMs: Date.now() - 120_500 };
    told.letters = { ...told.letters, byEnvironment: new Map([[owner.environmentId, 3]]) };
    const { text } = await browser.get(path);
    for (const said of [
      ...['10.0\u00a0% of 1\u202f000\u00a0messages', '2\u00a0min; 5 wait', '3\u00a0letters'],
      ...[/a secret one \w{4}…\w{4}: for 91\u00a0d/, /a publishable one \w{4}…\w{4}: 20 of 100\u00a0requests refused/],
    ])
      expect(text).toMatch(said);
    expect(numberOnHome((await browser.get('/')).text)).toBe('5');
  });

  it('tell of a secret key that was used long ago, and of none that has ended', async () => {
    const { browser, path, makeKey, use, store, owner } = await open();
    const { keyId } = await makeKey('secret', 400);
    await use(keyId, { lastUsedAt: Date.now() - 95 * DAY_MS });
    expect((await browser.get(path)).text).toContain('for 95\u00a0d');
    await revokeKey({ store }, { ...owner, kind: 'secret' });
    expect((await browser.get(path)).text).toContain('No alert');
  });

  it('say what cannot be told, instead of that all is well', async () => {
    const { browser, path, told } = await open();
    told.isAway = true;
    const { status, text } = await browser.get(path);
    expect([status, text.includes('All is within its bounds')]).toEqual([200, false]);
    expect(text).toContain('Cannot be told now: Visible delay, Dead letters.');
    expect(numberOnHome((await browser.get('/')).text)).toBe('cannot be told now');
  });
});
