import { minuteOf } from '@playline/access-keys';
import { createMemoryKeyUsage } from '@playline/access-keys/test';
import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

const toPath = (id: string) => `/projects/${id}/environments/production/limits`;
const readRates = async (id: string) => {
  const project = (await portal.parts.projects.all()).find((each) => each.id === id)!;
  const [{ cap, limit } = { cap: null, limit: null }] = project.environments;
  return { cap, limit };
};

it('an owner can set and remove an environment limit', async () => {
  const project = await portal.addProject('Limited');
  const browser = await portal.signIn({ project, role: 'owner' });
  const path = toPath(project.id);
  await browser.submit(path, 'limit', { 'per-second': '500', burst: '1000' });
  expect(await readRates(project.id)).toEqual({ cap: null, limit: { perSecond: 500, burst: 1000 } });
  expect((await browser.get(path)).text).toContain('500\u00a0messages/s');
  await browser.submit(path, 'limit', { 'per-second': '', burst: '' });
  expect(await readRates(project.id)).toEqual({ cap: null, limit: null });
});

it('only an administrator can set a cap, and a limit cannot exceed the cap', async () => {
  const project = await portal.addProject('Capped');
  const [admin, owner] = [await portal.signIn(), await portal.signIn({ project, role: 'owner' })];
  const path = toPath(project.id);
  expect(owner.formOf((await owner.get(path)).text, 'cap')).toBeNull();
  await admin.submit(path, 'cap', { 'per-second': '100', burst: '200' });
  const refused = await owner.submit(path, 'limit', { 'per-second': '101', burst: '200' });
  expect([refused.status, refused.text.includes('The limit must not be above the cap.')]).toEqual([400, true]);
  expect(await readRates(project.id)).toEqual({ cap: { perSecond: 100, burst: 200 }, limit: null });
});

it('the limits page shows the usage in the last hour and in its busiest minute', async () => {
  const usage = createMemoryKeyUsage();
  const usagePortal = await openPortal({ usage });
  const project = await usagePortal.addProject('Used');
  const browser = await usagePortal.signIn({ project, role: 'analyst' });
  expect((await browser.get(toPath(project.id))).text).toContain('no messages in the last hour');
  const environments = [{ environmentId: `${project.id}-production`, accepted: 5_400, rejected: 600 }];
  await usage.add({ minuteAt: minuteOf(Date.now()), keys: [], environments });
  const { text } = await browser.get(toPath(project.id));
  const owner = await usagePortal.signIn({ project, role: 'owner' });
  await owner.submit(toPath(project.id), 'limit', { 'per-second': '400', burst: '1000' });
  expect((await owner.get(toPath(project.id))).text).toContain('busiest minute, 25.0\u00a0% of the limit');
  await usagePortal.close();
  expect(text).toContain('1.7\u00a0messages/s on average in the last hour, 100\u00a0messages/s in the busiest minute');
});

it.each(['0', '-1', '1.5', '1e3', 'many', '200001'])(
  'the limits form rejects %s messages per second and shows the entered value again',
  async (text) => {
    const project = await portal.addProject('Typed');
    const browser = await portal.signIn({ project, role: 'owner' });
    const refused = await browser.submit(toPath(project.id), 'limit', { 'per-second': text, burst: '10' });
    expect([refused.status, refused.text.includes(`value="${text}"`)]).toEqual([400, true]);
  },
);
