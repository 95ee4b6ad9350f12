import type { ProjectRecord } from '@playline/access-keys';
import { expect, it } from 'vitest';
import { usePortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

const portal = usePortal();

const toPath = ({ id }: ProjectRecord) => `/projects/${id}/members`;
const findMembers = async ({ id }: ProjectRecord) =>
  (await portal.parts.accounts.all()).filter(({ roles }) => roles.some(({ projectId }) => projectId === id));

it('an invitation link is shown once and grants the chosen role', async () => {
  const project = await portal.addProject('Invites');
  const owner = await portal.signIn({ project, role: 'owner' });
  const { status, text } = await owner.submit(toPath(project), 'invite', { name: 'Dan', role: 'developer' });
  const link = /<code>(http[^<]*\/invitation\?code=[\w-]{43})<\/code>/.exec(text)?.[1] ?? '';
  expect([status, new URL(link).origin]).toEqual([200, portal.origin]);
  const page = (await owner.get(toPath(project))).text;
  expect([page.includes('Dan'), page.includes(new URL(link).searchParams.get('code')!)]).toEqual([true, false]);
  const dan = portal.browser();
  const filled = { login: 'dan', name: 'Dan', password: PASSWORD, repeated: PASSWORD };
  await dan.submit(link.slice(portal.origin.length), 'accept', filled);
  expect((await dan.get(`/projects/${project.id}/environments/production/keys`)).status).toBe(200);
  expect((await findMembers(project)).map(({ roles }) => roles[0]?.role).toSorted()).toEqual(['developer', 'owner']);
});

it('changing the role of a member ends all sessions of the member', async () => {
  const project = await portal.addProject('Changes');
  const owner = await portal.signIn({ project, role: 'owner' });
  const dan = await addPerson(portal, 'changed', { roles: [{ projectId: project.id, role: 'developer' }] });
  const browser = portal.browser();
  await browser.submit('/sign-in', 'password', { login: 'changed', password: PASSWORD });
  await owner.submit(toPath(project), 'role', { account: dan.id, role: 'analyst' });
  expect((await browser.get(toPath(project))).status).toBe(303);
  await owner.submit(toPath(project), 'remove', { account: dan.id });
  await browser.submit('/sign-in', 'password', { login: 'changed', password: PASSWORD });
  expect((await browser.get(toPath(project))).status).toBe(404);
});

it('a rejected change of a role opens the row of the member again', async () => {
  const project = await portal.addProject('Rejected');
  const owner = await portal.signIn({ project, role: 'owner' });
  const isOpen = (text: string) => /class="toggle" autocomplete="off" checked/.test(text);
  expect(isOpen((await owner.get(toPath(project))).text)).toBe(false);
  const refused = await owner.submit(toPath(project), 'role', { role: 'king' });
  expect([refused.status, isOpen(refused.text)]).toEqual([400, true]);
});

it('an owner cannot assign a role to an account that is not a member', async () => {
  const project = await portal.addProject('Game');
  const owner = await portal.signIn({ project, role: 'owner' });
  const nonmember = await addPerson(portal, 'nonmember', {});
  const { status } = await owner.submit(toPath(project), 'role', { account: nonmember.id, role: 'analyst' });
  expect(status).toBe(404);
  expect(await findMembers(project)).toHaveLength(1);
});

it('a revoked invitation is removed from the members page, and an unknown role is rejected', async () => {
  const project = await portal.addProject('Game');
  const owner = await portal.signIn({ project, role: 'owner' });
  await owner.submit(toPath(project), 'invite', { name: 'Eve', role: 'owner' });
  await owner.submit(toPath(project), 'revoke');
  expect(await findMembers(project)).toHaveLength(1);
  expect((await owner.submit(toPath(project), 'invite', { name: 'Eve', role: 'king' })).status).toBe(400);
});
