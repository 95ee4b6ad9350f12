import { expect, it } from 'vitest';
import type { ErasureLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { usePortal } from '../../test/open-portal.ts';

const MINUTE_MS = 60_000;
const OTHER = '77777777-7777-4777-8777-777777777777';
const [DONE, WAITING] = ['55555555-5555-4555-8555-555555555555', '66666666-6666-4666-8666-666666666666'] as const;
const NOW_MS = Date.parse('2026-11-01T10:00:00Z');

const createErasure = (overrides: Partial<ErasureLine>): ErasureLine => ({
  erasureId: WAITING,
  requestedMs: NOW_MS,
  cutoffMs: NOW_MS,
  traceId: 't',
  state: 'waiting',
  identities: null,
  deleted: null,
  fencedMs: null,
  visiblyErasedMs: null,
  physicallyErasedMs: null,
  logExpiresMs: null,
  logExpiredMs: null,
  ...overrides,
});
const completed = createErasure({
  erasureId: DONE,
  state: 'erased',
  identities: 3,
  deleted: 1234,
  fencedMs: NOW_MS + 5000,
  visiblyErasedMs: NOW_MS + 3 * MINUTE_MS,
  logExpiresMs: NOW_MS + 79 * 60 * MINUTE_MS,
});

const erasures: Record<string, ErasureLine[]> = {};
const portal = usePortal({ reads: createMemoryReads({ erasures }) });

async function openProject() {
  const project = await portal.addProject('Game');
  const environment = project.environments.find(({ name }) => name === 'development')!;
  const path = `/projects/${project.id}/environments/development/erasures`;
  return { environment, path, browser: await portal.signIn({ project, role: 'analyst' }) };
}

it('the erasures page shows the state and the duration of each erasure, and links to its progress', async () => {
  const { browser, environment, path } = await openProject();
  erasures[environment.id] = [completed, createErasure({})];
  const { text } = await browser.get(path);
  for (const expected of [DONE, WAITING, 'erased', 'waiting', '3\u00a0min', `${path}/${WAITING}">Follow`])
    expect(text).toContain(expected);
  expect(text.match(/\/receipt">Download/g)).toHaveLength(1);
});

it('the erasures page reports if an erasure found no data', async () => {
  const { browser, environment, path } = await openProject();
  erasures[environment.id] = [completed];
  expect((await browser.get(path)).text).not.toContain('nothing was stored');
  erasures[environment.id] = [{ ...completed, identities: 1, deleted: 0 }];
  expect((await browser.get(path)).text).toContain('nothing was stored');
});

it('the portal returns the receipt of a completed erasure as a file, and 404 for other receipt paths', async () => {
  const [ownProject, otherProject] = [await openProject(), await openProject()];
  erasures[ownProject.environment.id] = [completed, createErasure({})];
  erasures[otherProject.environment.id] = [createErasure({ ...completed, erasureId: OTHER })];
  const file = await ownProject.browser.get(`${ownProject.path}/${DONE}/receipt`);
  expect([file.status, JSON.parse(file.text).erasureId]).toEqual([200, DONE]);
  expect(file.headers.get('content-disposition')).toContain(`erasure-${DONE}.json`);
  for (const path of [
    `${ownProject.path}/${WAITING}/receipt`,
    `${ownProject.path}/${OTHER}/receipt`,
    `${ownProject.path}/nothing/receipt`,
    `${otherProject.path}/${DONE}/receipt`,
  ])
    expect([path, (await ownProject.browser.get(path)).status]).toEqual([path, 404]);
});
