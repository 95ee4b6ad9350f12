import { expect, it } from 'vitest';
import { openPortal, usePortal } from '../../test/open-portal.ts';

const portal = usePortal();

async function openProject(name: string) {
  const project = await portal.addProject(name);
  const path = `/projects/${project.id}/environments/production/connect`;
  const list = async () => (await portal.parts.analysts!.list()).filter(({ owner }) => owner.projectId === project.id);
  return { project, path, list };
}

it('an analyst gets a password that only the response to the form contains, and snippets with the new user', async () => {
  const { project, path, list } = await openProject('Analysed');
  const browser = await portal.signIn({ project, role: 'analyst' });
  expect((await browser.get(path)).text).toContain('YOUR_USER:$CLICKHOUSE_PASSWORD');
  const { status, text } = await browser.submit(path, 'create', { name: 'Weekly report' });
  const [{ account, environments } = { account: '', environments: [] }] = await list();
  expect([status, environments]).toEqual([200, [`${project.id}-development`, `${project.id}-production`]]);
  expect(text).toContain(`export CLICKHOUSE_PASSWORD=secret-of-${account}`);
  expect(text).toContain(`${account}:$CLICKHOUSE_PASSWORD`);
  const page = (await browser.get(path)).text;
  expect([page.includes('Weekly report'), page.includes(account), page.includes('secret-of')]).toEqual([
    true,
    true,
    false,
  ]);
});

it('only a member who may read raw ids can include them, and the page explains credentials that lost them', async () => {
  const { project, path, list } = await openProject('Raw');
  const analyst = await portal.signIn({ project, role: 'analyst' });
  const developer = await portal.signIn({ project, role: 'developer' });
  await analyst.submit(path, 'create', { name: 'Own form field', 'raw-ids': 'on' });
  await developer.submit(path, 'create', { name: 'Notebook', 'raw-ids': 'on' });
  expect((await list()).map(({ owner, rawIds }) => [owner.name, rawIds])).toEqual([
    ['Own form field', false],
    ['Notebook', true],
  ]);
  const [, { account } = { account: '' }] = await list();
  for (const name of ['production', 'development'])
    await portal.parts.analysts!.setGrant(account, { environmentId: `${project.id}-${name}`, revoked: true });
  expect((await developer.get(path)).text).toContain('needs the developer role');
});

it('members see and revoke only their own credentials, owners those of every member of the project', async () => {
  const { project, path, list } = await openProject('Shared');
  const other = await openProject('Other');
  const [analyst, developer, owner, stranger] = [
    await portal.signIn({ project, role: 'analyst' }),
    await portal.signIn({ project, role: 'developer' }),
    await portal.signIn({ project, role: 'owner' }),
    await portal.signIn({ project: other.project, role: 'owner' }),
  ];
  await developer.submit(path, 'create', { name: 'Of the developer' });
  await analyst.submit(path, 'create', { name: 'Of the analyst' });
  await stranger.submit(other.path, 'create', { name: 'Elsewhere' });
  const [{ account } = { account: '' }] = await list();
  expect((await analyst.get(path)).text).not.toContain('Of the developer');
  for (const [browser, page] of [
    [analyst, path],
    [stranger, other.path],
  ] as const)
    expect((await browser.submit(page, 'revoke', { account })).status).toBe(404);
  expect((await list()).length).toBe(2);
  expect((await owner.get(path)).text).toContain('Of the developer');
  expect((await owner.submit(path, 'revoke', { account })).status).toBe(303);
  expect((await analyst.submit(path, 'revoke')).status).toBe(303);
  expect([await list(), (await other.list()).length]).toEqual([[], 1]);
});

it('a member has at most five credentials per project, and a form without a name shows the error', async () => {
  const { project, path, list } = await openProject('Many');
  const browser = await portal.signIn({ project, role: 'analyst' });
  expect((await browser.submit(path, 'create', { name: ' ' })).status).toBe(400);
  for (let count = 0; count < 5; count += 1) await browser.submit(path, 'create', { name: `Tool ${count}` });
  const refused = await browser.submit(path, 'create', { name: 'One more' });
  expect([refused.status, refused.text.includes('Revoke one'), (await list()).length]).toEqual([409, true, 5]);
});

it('without the account that creates credentials, the page names the setting and the command', async () => {
  const without = await openPortal({ analysts: null });
  const project = await without.addProject('Without');
  const browser = await without.signIn({ project, role: 'analyst' });
  const { text } = await browser.get(`/projects/${project.id}/environments/production/connect`);
  await without.close();
  expect([text.includes('CLICKHOUSE_ACCOUNTS_PASSWORD'), browser.formOf(text, 'create')]).toEqual([true, null]);
});
