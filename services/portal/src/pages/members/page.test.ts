import type { ProjectRecord } from '@playline/access-keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal();
});
afterAll(() => portal.close());

const pathOf = ({ id }: ProjectRecord) => `/projects/${id}/members`;
const inProject = async ({ id }: ProjectRecord) =>
  (await portal.parts.accounts.all()).filter(({ roles }) => roles.some(({ projectId }) => projectId === id));

describe('the page of members', () => {
  it('an owner invites a member with a link that is shown once, and the member gets the chosen role', async () => {
    const project = await portal.addProject('Invites');
    const owner = await portal.signIn({ project, role: 'owner' });
    const { status, text } = await owner.submit(pathOf(project), 'invite', { name: 'Dan', role: 'developer' });
    const link = /<code>(http[^<]*\/invitation\?code=[\w-]{43})<\/code>/.exec(text)?.[1] ?? '';
    expect([status, new URL(link).origin]).toEqual([200, portal.origin]);
    const page = (await owner.get(pathOf(project))).text;
    expect([page.includes('Dan'), page.includes(new URL(link).searchParams.get('code')!)]).toEqual([true, false]);
    const dan = portal.browser();
    const filled = { login: 'dan', name: 'Dan', password: PASSWORD, repeated: PASSWORD };
    await dan.submit(link.slice(portal.origin.length), 'accept', filled);
    expect((await dan.get(`/projects/${project.id}/environments/production/keys`)).status).toBe(200);
    expect((await inProject(project)).map(({ roles }) => roles[0]?.role).toSorted()).toEqual(['developer', 'owner']);
  });

  it('all members see the list, and only owners have its forms', async () => {
    const project = await portal.addProject('Shown');
    await portal.signIn({ project, role: 'owner' });
    for (const role of ['developer', 'analyst'] as const) {
      const browser = await portal.signIn({ project, role });
      const { text, status } = await browser.get(pathOf(project));
      expect([status, ...['invite', 'role', 'remove'].map((action) => browser.formOf(text, action))]).toEqual([
        200,
        null,
        null,
        null,
      ]);
    }
  });

  it('a change of role ends the sessions of a member', async () => {
    const project = await portal.addProject('Changes');
    const owner = await portal.signIn({ project, role: 'owner' });
    const dan = await addPerson(portal, 'changed', { roles: [{ projectId: project.id, role: 'developer' }] });
    const browser = portal.browser();
    await browser.submit('/sign-in', 'password', { login: 'changed', password: PASSWORD });
    await owner.submit(pathOf(project), 'role', { account: dan.id, role: 'analyst' });
    expect((await browser.get(pathOf(project))).status).toBe(303);
    await owner.submit(pathOf(project), 'remove', { account: dan.id });
    await browser.submit('/sign-in', 'password', { login: 'changed', password: PASSWORD });
    expect((await browser.get(pathOf(project))).status).toBe(404);
  });

  it('the last owner cannot be removed', async () => {
    const project = await portal.addProject('Last');
    const owner = await portal.signIn({ project, role: 'owner' });
    const [account] = await inProject(project);
    for (const [action, values] of [
      ['role', { role: 'analyst' }],
      ['remove', {}],
    ] as const) {
      const { status, text } = await owner.submit(pathOf(project), action, { account: account!.id, ...values });
      expect([status, text.includes('last owner of the project')]).toEqual([409, true]);
    }
    expect((await owner.get(pathOf(project))).status).toBe(200);
  });

  it('an owner cannot give a role to an account that is not a member', async () => {
    const project = await portal.addProject('Grabs');
    const owner = await portal.signIn({ project, role: 'owner' });
    const stranger = await addPerson(portal, 'stranger', {});
    const { status } = await owner.submit(pathOf(project), 'role', { account: stranger.id, role: 'analyst' });
    expect(status).toBe(404);
    expect(await inProject(project)).toHaveLength(1);
  });

  it('a revoked invitation disappears, and an unknown role is refused', async () => {
    const project = await portal.addProject('Takes back');
    const owner = await portal.signIn({ project, role: 'owner' });
    await owner.submit(pathOf(project), 'invite', { name: 'Eve', role: 'owner' });
    await owner.submit(pathOf(project), 'revoke');
    expect(await inProject(project)).toHaveLength(1);
    expect((await owner.submit(pathOf(project), 'invite', { name: 'Eve', role: 'king' })).status).toBe(400);
  });
});
