import { minuteOf } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { expect, it, onTestFinished } from 'vitest';
import type { ErasureLine } from '../../reads/index.ts';
import { createMemoryReads } from '../../test/memory-reads.ts';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

const findProject = async (id: string) => (await portal.parts.projects.all()).find((project) => project.id === id)!;

it('an administrator can add an environment and rename the project', async () => {
  const { id } = await portal.addProject('First');
  const browser = await portal.signIn();
  const path = `/projects/${id}`;
  const added = await browser.submit(path, 'add-environment', { environment: 'staging', kind: 'development' });
  expect(added.headers.get('location')).toBe(`${path}?done=added`);
  await browser.submit(path, 'rename', { name: 'Second' });
  expect(await findProject(id)).toMatchObject({ name: 'Second', environments: [{}, {}, { id: `${id}-staging` }] });
  expect((await browser.get(`${path}/environments/staging/keys`)).status).toBe(200);
});

it('a project can be archived only after its keys are revoked, and its page then has no forms', async () => {
  const { id } = await portal.addProject('Done');
  const browser = await portal.signIn();
  const path = `/projects/${id}`;
  const keys = `${path}/environments/development/keys`;
  await browser.submit(keys, 'create', { kind: 'publishable' });
  expect((await browser.submit(path, 'archive', { confirm: 'Dona' })).status).toBe(400);
  const refused = await browser.submit(path, 'archive', { confirm: 'Done' });
  expect([refused.status, refused.text.includes('live keys (1)')]).toEqual([409, true]);
  await browser.submit(keys, 'revoke', { kind: 'publishable', stops: 'now', confirm: 'development' });
  expect((await browser.submit(path, 'archive', { confirm: 'Done' })).status).toBe(303);
  expect((await findProject(id)).state).toBe('archived');
  expect(browser.formOf((await browser.get(path)).text, 'rename')).toBeNull();
});

it('the home page lists the projects in which the account has a role, or all projects for administrators', async () => {
  const [project, otherProject] = [await portal.addProject('One of two'), await portal.addProject('Other of two')];
  const member = (await (await portal.signIn({ project, role: 'analyst' })).get('/')).text;
  expect([member.includes(project.id), member.includes(otherProject.id)]).toEqual([true, false]);
  const all = (await (await portal.signIn()).get('/')).text;
  expect([all.includes(project.id), all.includes(otherProject.id)]).toEqual([true, true]);
});

it('creating a project opens the overview of its development environment, which starts with a key', async () => {
  const browser = await portal.signIn();
  const { status, headers } = await browser.submit('/', 'create', { name: 'Created' });
  const location = headers.get('location') ?? '';
  expect([status, /^\/projects\/p\w{12}\/environments\/development\/overview$/.test(location)]).toEqual([303, true]);
  expect((await browser.get(location)).text).toContain('Create a key');
});

it('the home page shows the event rate and the percentage of rejected events for each environment', async () => {
  const usage = createMemoryKeyUsage();
  const usagePortal = await openPortal({ usage });
  const { id } = await usagePortal.addProject('Busy');
  const environments = [{ environmentId: `${id}-production`, accepted: 2_850, rejected: 150 }];
  await usage.add({ minuteAt: minuteOf(Date.now() - 60_000), keys: [], environments });
  const { text } = await (await usagePortal.signIn()).get('/');
  await usagePortal.close();
  expect(text).toContain('9.5\u00a0events/s, 5.0\u00a0% rejected');
  expect(text).toContain('no events in the last hour');
});

it('the home page explains how to get access if the account has no role', async () => {
  const { id } = await portal.addAccount({});
  const browser = portal.browser();
  browser.resumeSession((await portal.parts.sessions.create({ accountId: id, userAgent: '', address: '' })).text);
  expect((await browser.get('/')).text).toContain('Contact a project owner for an invitation');
});

it('the project page shows the oldest open erasure per environment, and what to do if it is late', async () => {
  const open = (erasureId: string, ageMs: number) =>
    ({ erasureId, requestedMs: Date.now() - ageMs, visiblyErasedMs: null }) as ErasureLine;
  const erasures: Record<string, ErasureLine[]> = {};
  const erasing = await openPortal({ reads: createMemoryReads({ erasures }) });
  onTestFinished(() => erasing.close());
  const project = await erasing.addProject('Erasing');
  const path = `/projects/${project.id}`;
  const owner = await erasing.signIn({ project, role: 'owner' });
  erasures[`${project.id}-production`] = [open('newest', 20_000)];
  erasures[`${project.id}-development`] = [open('oldest', 130_000), open('newer', 121_000)];
  const { text } = await owner.get(path);
  expect(text).toContain(`<a href="${path}/environments/development/erasures">2\u00a0min</a>, 2 open`);
  expect(text).not.toContain('late</span>');
  erasures[`${project.id}-production`] = [open('late-erasure', 3 * 3_600_000)];
  expect((await owner.get(path)).text).toMatch(/late<\/span>.*Report the erasure id <code>late-erasure/s);
  expect((await (await erasing.signIn()).get(path)).text).toContain('npm run erasures -- show late-erasure');
});
