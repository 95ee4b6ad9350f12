import { type ActiveAlert, type AlertStore, PROJECT_RULES } from '@playline/alerts';
import { createMemoryAlerts } from '@playline/alerts/memory';
import { expect, it } from 'vitest';
import type { AuditLine, Overview } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const store: AlertStore = createMemoryAlerts();
const audit: Record<string, AuditLine[]> = {};
const overviews: Record<string, Partial<Overview>> = {};
const entries: object[] = [];
let failures: { channel: 'webhook'; reason: string }[] = [];
const portal = usePortal({
  reads: createMemoryReads({ audit }),
  audit: { append: async (entry) => void entries.push(entry) },
  alerts: {
    store,
    delivery: {
      hasEmail: false,
      keyOf: ({ id, alertKeys }) => `key-${alertKeys.length}-of-${id}`,
      test: async () => failures,
    },
  },
});

async function openProject(role: 'analyst' | 'developer' | 'owner') {
  const project = await portal.addProject('Game');
  const path = `/projects/${project.id}/alerts`;
  return { project, path, environmentId: `${project.id}-production`, browser: await portal.signIn({ project, role }) };
}

async function fire(projectId: string, changes: Partial<ActiveAlert> = {}, nowMs = Date.now()) {
  const scope = { projectId, environmentId: `${projectId}-production` };
  const alert = {
    rule: 'NoMessages',
    ...scope,
    value: 7,
    text: 'No message.',
    firedAt: Date.now(),
    contrary: 0,
  } as const;
  await store.write('', { changed: [{ ...alert, ...changes }], removed: [], changes: [] }, nowMs);
}

it('the alerts page shows firing alerts with what to do, and all rules with their state', async () => {
  const { browser, path, project } = await openProject('analyst');
  await fire(project.id);
  await fire(project.id, { rule: 'ErasureLate', firedAt: null, text: 'not firing yet' });
  const { text } = await browser.get(path);
  for (const { name, summary } of PROJECT_RULES) expect([name, text.includes(summary)]).toEqual([name, true]);
  for (const expected of ['No message.', 'firing in 1', 'Open Live and send a message', 'environments/production/live'])
    expect(text).toContain(expected);
  expect(text).not.toContain('not firing yet');
  for (const form of ['acknowledge', 'save', 'test', 'key']) expect(browser.formOf(text, form)).toBeNull();
});

it('the alerts page warns if the last evaluation is older than five minutes', async () => {
  const { browser, path, project } = await openProject('analyst');
  const warning = 'The rules are currently not evaluated';
  await fire(project.id);
  const { text } = await browser.get(path);
  expect([text.includes('Evaluated '), text.includes(warning)]).toEqual([true, false]);
  await fire(project.id, {}, Date.now() - 301_000);
  expect((await browser.get(path)).text).toContain(warning);
});

it('a developer acknowledges an alert once, and the audit log records it', async () => {
  const { browser, path, project, environmentId } = await openProject('developer');
  await fire(project.id);
  entries.length = 0;
  expect((await browser.submit(path, 'acknowledge')).status).toBe(303);
  const { text } = await browser.get(path);
  expect(browser.formOf(text, 'acknowledge')).toBeNull();
  const expected = { action: 'alert.acknowledged', object: 'NoMessages', detail: { environment: environmentId } };
  expect(entries).toMatchObject([{ ...expected, projectId: project.id }]);
});

it('an owner sets the delivery and sends a test, and the page shows why a test was not delivered', async () => {
  const { browser, path } = await openProject('owner');
  expect((await browser.submit(path, 'test')).text).toContain('Save a webhook or an e-mail address first.');
  const webhook = 'https://chat.example/hook';
  expect((await browser.submit(path, 'save', { webhook })).status).toBe(303);
  const { text } = await browser.get(path);
  for (const expected of [webhook, 'E-mail is not set up']) expect(text).toContain(expected);
  expect((await browser.submit(path, 'test')).status).toBe(303);
  failures = [{ channel: 'webhook', reason: 'status 500' }];
  expect((await browser.submit(path, 'test')).text).toContain('not delivered by webhook: status 500');
  failures = [];
  for (let count = 2; count < 10; count++) await browser.submit(path, 'test');
  const refused = await browser.submit(path, 'test');
  expect([refused.status, refused.text.includes('Only 10 tests per hour')]).toEqual([429, true]);
});

it('an owner creates and replaces the signing key, and only the response shows it', async () => {
  const { browser, path, project } = await openProject('owner');
  expect((await browser.get(path)).text).toContain('Create signing key');
  for (const count of [1, 2, 3, 4]) {
    const key = `key-${count}-of-${project.id}`;
    const { text } = await browser.submit(path, 'key');
    for (const expected of [key, 'shown only once']) expect(text).toContain(expected);
    const page = (await browser.get(path)).text;
    expect([page.includes('Replace signing key'), page.includes(key)]).toEqual([true, false]);
  }
  expect((await browser.submit(path, 'key')).text).toContain('Only 4 replacements per day');
});

it.each([
  [{ webhook: 'ftp://chat.example' }, 'The webhook must be an http or https URL'],
  [{ webhook: 'https://user:password@chat.example' }, 'without a user, a password'],
  [{ emails: 'ada@example.com, not an address' }, 'is not an e-mail address'],
  [{ emails: 'ada@example.com>' }, 'is not an e-mail address'],
  [{ emails: Array.from({ length: 11 }, (_, index) => `a${index}@example.com`).join(' ') }, 'at most 10'],
])('the delivery settings %j are refused with a reason', async (values, reason) => {
  const { browser, path } = await openProject('owner');
  const { status, text } = await browser.submit(path, 'save', { webhook: '', emails: '', ...values });
  expect([status, text.includes(reason)]).toEqual([400, true]);
});

it('the history shows the alerts of the audit log in pages, and no other entries', async () => {
  const { browser, path, project, environmentId } = await openProject('analyst');
  const entry = {
    kind: 'entry',
    revision: 0,
    requestId: 'r',
    address: '',
    actor: '',
    environmentId,
    object: 'NoMessages',
  };
  const toLine = (index: number, action: string, detail: object): AuditLine => ({
    ...entry,
    entryId: `entry-${String(index).padStart(3, '0')}`,
    happenedMs: Date.now() - index * 60_000,
    action,
    detail: JSON.stringify(detail),
  });
  audit[project.id] = [
    toLine(0, 'alert.delivery-failed', { channel: 'webhook', reason: 'status 503', of: 'fired' }),
    ...Array.from({ length: 60 }, (_, index) => toLine(index + 1, 'alert.fired', { text: `text-${index}-` })),
    toLine(70, 'key.create', { text: 'another entry' }),
  ];
  const seen: string[] = [];
  let pages = 0;
  for (let next: string | undefined = path; next !== undefined; pages++) {
    const { text } = await browser.get(next);
    seen.push(...[...text.matchAll(/text-(\d+)-/g)].map(([, index]) => index!));
    if (pages === 0) expect(text).toContain('webhook: status 503');
    expect(text).not.toContain('another entry');
    next = /href="([^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([seen.length, new Set(seen).size, pages]).toEqual([60, 60, 3]);
});

it('only administrators see the rules of the deployment', async () => {
  const { browser, path } = await openProject('owner');
  const administrator = await portal.signIn();
  const shown = [browser, administrator].map(async (each) =>
    (await each.get(path)).text.includes('Rules of the deployment'),
  );
  expect(await Promise.all(shown)).toEqual([false, true]);
});

it('the sidebar and the overview show the number of firing alerts', async () => {
  const own = await openPortal({ alerts: { ...portal.parts.alerts, store }, reads: createMemoryReads({ overviews }) });
  const project = await own.addProject('Game');
  overviews[`${project.id}-production`] = { firstS: 1 };
  await fire(project.id);
  const browser = await own.signIn({ project, role: 'analyst' });
  const { text } = await browser.get(`/projects/${project.id}/environments/production/overview`);
  expect(text).toContain('<span class="tag bad">1<span class="visually-hidden"> firing</span></span>');
  expect(text).toContain('An alert is firing in this project.');
  await own.close();
});
