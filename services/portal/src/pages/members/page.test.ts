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

describe('members of a project', () => {
  it('are invited by an owner with a link that is shown once, and come with the role that was chosen', async () => {
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

  it('are shown to all members, and changed by owners alone', async () => {
    const project = await portal.addProject('Shown');
    await portal.signIn({ project, role: 'owner' });
    for (const role of ['developer', 'analyst'] as const) {
      const browser = await portal.signIn({ project, role });
      const { text, status } = await browser.get(pathOf(project));
      expect([status, ...['invite', 'role', 'remove'].map((deed) => browser.formOf(text, deed))]).toEqual([
        200,
        null,
        null,
        null,
      ]);
    }
    const stranger = await portal.signIn({ project: await portal.addProject('Other'), role: 'owner' });
    expect((await stranger.get(pathOf(project))).status).toBe(404);
  });

  it('lose their sessions with a change of role, and what they may no longer do', async () => {
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

  it('keep their last owner', async () => {
    const project = await portal.addProject('Last');
    const owner = await portal.signIn({ project, role: 'owner' });
    const [account] = await inProject(project);
    for (const [deed, values] of [
      ['role', { role: 'analyst' }],
      ['remove', {}],
    ] as const) {
      const { status, text } = await owner.submit(pathOf(project), deed, { account: account!.id, ...values });
      expect([status, text.includes('last owner of the project')]).toEqual([409, true]);
    }
    expect((await owner.get(pathOf(project))).status).toBe(200);
  });

  it('are not anybody whom an owner names: an account of elsewhere gets no role', async () => {
    const project = await portal.addProject('Grabs');
    const owner = await portal.signIn({ project, role: 'owner' });
    const stranger = await addPerson(portal, 'stranger', {});
    const { status } = await owner.submit(pathOf(project), 'role', { account: stranger.id, role: 'analyst' });
    expect(status).toBe(404);
    expect(await inProject(project)).toHaveLength(1);
  });

  it('are invited no longer when the invitation is taken back', async () => {
    const project = await portal.addProject('Takes back');
    const owner = await portal.signIn({ project, role: 'owner' });
    await owner.submit(pathOf(project), 'invite', { name: 'Eve', role: 'owner' });
    await owner.submit(pathOf(project), 'revoke');
    expect(await inProject(project)).toHaveLength(1);
    expect((await owner.submit(pathOf(project), 'invite', { name: 'Eve', role: 'king' })).status).toBe(400);
  });
});
