import { type AuditEntry, createKey, linkCollection } from '@playline/access-keys';
import { expect, it } from 'vitest';
import type { AuditLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const START_MS = Date.parse('2026-11-01T10:00:00Z');
let entries = 0;
const createEntry = (overrides: Partial<AuditLine> = {}): AuditLine => ({
  entryId: `key:${String(entries++).padStart(6, '0')}:é&1`,
  happenedMs: START_MS,
  environmentId: '',
  kind: 'key',
  object: 'key-1',
  revision: 1,
  action: 'key.create',
  actor: 'ada',
  requestId: 'request-1',
  address: '',
  detail: '{"name":"server"}',
  ...overrides,
});

const audit: Record<string, AuditLine[]> = {};
const written: AuditEntry[] = [];
const portal = usePortal({
  reads: createMemoryReads({ audit }),
  audit: { append: async (entry) => void written.push(entry) },
});

async function openProject() {
  const project = await portal.addProject('Game');
  const path = `/projects/${project.id}/audit`;
  return { project, path, browser: await portal.signIn({ project, role: 'owner' }) };
}

it('the audit log records every export', async () => {
  const { browser, project } = await openProject();
  const store = portal.parts.collections.storeFor({ changedBy: 'a test', requestId: 'r' });
  const owner = { projectId: project.id, environmentId: `${project.id}-production` };
  await linkCollection({ store }, { ...owner, chain: 'main', contractAddress: `0x${'a1'.repeat(20)}`, name: 'Things' });
  written.length = 0;
  const environment = `/projects/${project.id}/environments/production`;
  for (const page of ['rejections', 'mints', 'activities'])
    expect((await browser.get(`${environment}/${page}?as=csv`)).headers.get('content-type')).toContain('text/csv');
  await browser.get(`/projects/${project.id}/audit?as=csv`);
  expect(written.map(({ action, projectId }) => [action, projectId])).toEqual(
    ['rejections.save', 'mints.save', 'activities.save', 'audit.save'].map((action) => [action, project.id]),
  );
});

it('the audit page shows names instead of ids, and the ids on hover', async () => {
  const { browser, path, project } = await openProject();
  const ada = await portal.addAccount({});
  const environmentId = `${project.id}-production`;
  const detail = JSON.stringify({ name: 'server', projectId: project.id });
  audit[project.id] = [createEntry({ actor: ada.id, address: '192.0.2.7', object: project.id, environmentId, detail })];
  const { status, text } = await browser.get(path);
  expect(status).toBe(200);
  for (const expected of ['key.create', '192.0.2.7', '<dt>name</dt><dd><code>server</code></dd>'])
    expect(text).toContain(expected);
  const named = (id: string, name: string) => `<span title="${id}">${name}</span>`;
  for (const expected of [named(project.id, 'Game'), named(environmentId, 'production')])
    expect(text).toContain(expected);
  expect(text).toContain(named(ada.id, 'A name'));
  expect(text).toContain(`<dt>projectId</dt><dd>${named(project.id, 'Game')}`);
});

it('the audit page of a project reveals no names of other projects, also if a key is named like one of their ids', async () => {
  const { browser, path, project } = await openProject();
  const other = await portal.addProject('Hidden game');
  audit[project.id] = [
    createEntry({ object: other.id, detail: JSON.stringify({ name: other.id, signer: other.id }) }),
    createEntry({ detail: JSON.stringify({ name: project.id }) }),
  ];
  const [{ text }, file] = [await browser.get(path), await browser.get(`${path}?as=csv`)];
  expect([text.includes('Hidden game'), file.text.includes('Hidden game')]).toEqual([false, false]);
  expect(text).toContain(`<dt>name</dt><dd><code>${project.id}</code>`);
});

it('the audit page shows a key by its name, and a key without a name by its first and last characters', async () => {
  const { browser, path, project } = await openProject();
  const context = { store: portal.parts.keys.storeFor({ changedBy: 'operator', requestId: 'r' }), prefix: 'svcapik' };
  const owner = {
    projectId: project.id,
    environmentId: `${project.id}-production`,
    environment: 'production',
  } as const;
  const { record: named } = await createKey(context, { ...owner, kind: 'publishable', name: 'iOS 2.4' });
  const { record: unnamed } = await createKey(context, { ...owner, kind: 'secret' });
  audit[project.id] = [named, unnamed].map(({ keyId }) => createEntry({ object: keyId }));
  const { text } = await browser.get(path);
  expect(text).toContain(`<span title="${named.keyId}">iOS 2.4</span>`);
  expect(text).toContain(`<span title="${unnamed.keyId}">secret key ${unnamed.first4}…${unnamed.last4}</span>`);
});

it.each([1, 30, 300])('the audit pages show each entry once (entries per timestamp: %d)', async (perTimestamp) => {
  const { browser, path, project } = await openProject();
  audit[project.id] = Array.from({ length: 350 }, (_, index) =>
    createEntry({ object: `o-${index}-`, happenedMs: START_MS + 1000 * Math.floor(index / perTimestamp) }),
  );
  const seen: string[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const { text } = await browser.get(next);
    seen.push(...[...text.matchAll(/<code>(o-\d+-)<\/code>/g)].map(([, object]) => object!));
    next = /href="([^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect([seen.length, new Set(seen).size]).toEqual([350, 350]);
});

it('the audit export contains all fields of each entry, with the names of the page and the ids', async () => {
  const { browser, path, project } = await openProject();
  const [ada, environmentId] = [await portal.addAccount({}), `${project.id}-production`];
  const detail = `{"name":"a \\"b\\", c","roles":[{"projectId":"${project.id}"}]}`;
  audit[project.id] = [createEntry({ object: 'key-1', actor: ada.id, environmentId, detail })];
  const { text, headers } = await browser.get(`${path}?as=csv`);
  expect(headers.get('content-type')).toContain('text/csv');
  expect(text.split('\r\n')[1]).toBe(
    `"${new Date(START_MS).toISOString()}","key.create","key-1","A name","production","","request-1","{""name"":""a \\""b\\"", c"",""roles"":[{""projectId"":""Game""}]}","key-1","${ada.id}","${environmentId}"`,
  );
});
