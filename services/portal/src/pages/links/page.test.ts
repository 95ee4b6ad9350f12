import { type AccountContext, invite, issueFirstLink, resetAccess } from '@playline/access-keys';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import { expect, it } from 'vitest';
import { openPortal, type TestPortal, usePortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

const portal = usePortal();

const filled = { login: 'ada', name: 'Ada', password: PASSWORD, repeated: PASSWORD };
const operator = ({ parts }: TestPortal): AccountContext => {
  const store = parts.accounts.storeFor({ changedBy: 'a test', requestId: 'r' });
  return { store, sessions: parts.sessions, actorId: null };
};
const createInvitation = async (login: string) =>
  `/invitation?code=${(await invite(operator(portal), { name: login, roles: [{ projectId: 'p', role: 'analyst' }], isAdministrator: false })).text}`;

it('the link for the first administrator creates one administrator and stays valid after an invalid form', async () => {
  const emptyPortal = await openPortal();
  const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTokens: emptyPortal.parts.oneTimeTokens });
  const path = `/first-sign-in?code=${code}`;
  const submit = (overrides: object) => emptyPortal.browser().submit(path, 'accept', { ...filled, ...overrides });
  const invalidFields = [
    { login: 'x' },
    { name: '' },
    { password: 'short', repeated: 'short' },
    { repeated: 'another' },
  ];
  for (const invalid of invalidFields) {
    const { status, text } = await submit(invalid);
    expect([status, text.includes('role="alert"'), text.includes(PASSWORD)]).toEqual([400, true, false]);
  }
  const ada = emptyPortal.browser();
  expect((await ada.submit(path, 'accept', filled)).status).toBe(303);
  expect(await emptyPortal.parts.accounts.all()).toMatchObject([
    { isAdministrator: true, name: 'Ada', passwordHash: expect.stringMatching(/^\$argon2id/) },
  ]);
  expect((await ada.get('/instance/accounts')).text).toContain('administrator');
  expect((await emptyPortal.browser().get(path)).status).toBe(404);
  await emptyPortal.close();
});

it('an invitation creates one account, which has only the role in the invitation', async () => {
  const path = await createInvitation('bob');
  for (const _ of [1, 2]) expect((await portal.browser().get(path)).text).toContain('value="bob"');
  const browser = portal.browser();
  const submit = () =>
    browser.submit(path, 'accept', { ...filled, login: 'Bob', isAdministrator: 'true', role: 'owner' });
  expect((await submit()).headers.get('location')).toBe('/');
  expect((await browser.get('/settings')).text).toContain('<dd>bob</dd>');
  const [account] = (await portal.parts.accounts.all()).filter(({ login }) => login === 'bob');
  expect(account).toMatchObject({ isAdministrator: false, roles: [{ projectId: 'p', role: 'analyst' }] });
  expect(account!.changedBy).toBe(account!.id);
  expect((await portal.browser().get(path)).status).toBe(404);
});

it('accepting an invitation ends the previous session of the browser', async () => {
  const browser = await portal.signIn();
  const before = browser.cookie.split(/[=;]/)[1]!;
  await browser.submit(await createInvitation('zoe'), 'accept', { ...filled, login: 'zoe' });
  expect(await portal.parts.sessions.find(before)).toBeNull();
  expect((await browser.get('/settings')).text).toContain('<dd>zoe</dd>');
});

it('accepting an invitation while signed in adds the role to the existing account', async () => {
  const root = await addPerson(portal, 'has-account', { roles: [{ projectId: 'q', role: 'developer' }] });
  const path = await createInvitation('zed');
  const browser = portal.browser();
  const visited = await browser.get(path);
  const [, signIn = ''] = /href="(\/sign-in\?next=[^"]+)"/.exec(visited.text) ?? [];
  const typed = { login: 'has-account', password: PASSWORD };
  const response = await browser.submit(signIn, 'password', typed);
  expect(response.headers.get('location')).toBe(path);
  expect((await browser.get(path)).text).toContain('Accept as Name of has-account');
  const before = browser.cookie;
  expect((await browser.submit(path, 'join')).headers.get('location')).toBe('/');
  expect(browser.cookie).not.toBe(before);
  const account = (await portal.parts.accounts.all()).find(({ id }) => id === root.id);
  expect(account).toMatchObject({
    login: 'has-account',
    roles: [{ projectId: 'q' }, { projectId: 'p', role: 'analyst' }],
  });
  expect((await browser.get('/settings')).status).toBe(200);
  for (const each of [browser, portal.browser()]) expect((await each.get(path)).status).toBe(404);
});

it('accepting an invitation does not count as a fresh sign-in', async () => {
  const browser = await portal.signIn();
  const find: typeof portal.parts.sessions.find = async (text) => {
    const session = await portal.parts.sessions.find(text);
    return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
  };
  const { origin: _, ...shared } = portal.parts;
  const stalePortal = await openPortal({ ...shared, sessions: { ...shared.sessions, find } });
  const oldBrowser = stalePortal.browser();
  oldBrowser.resumeSession(browser.cookie.split(/[=;]/)[1]!);
  await oldBrowser.submit(await createInvitation('yan'), 'join');
  const session = await portal.parts.sessions.find(oldBrowser.cookie.split('=')[1]!);
  expect(session!.signedInAt).toBeLessThan(Date.now() - 600_000);
  await stalePortal.close();
});

it('accepting a reset link sets a new password and ends all sessions, but does not change the login', async () => {
  const ada = await addPerson(portal, 'lost', {});
  const { text: session } = await portal.parts.sessions.create({ accountId: ada.id, userAgent: '', address: '' });
  const { text } = await resetAccess(operator(portal), ada.id);
  const browser = portal.browser();
  const path = `/reset?code=${text}`;
  expect((await browser.get(path)).text).toContain('<strong>lost</strong>');
  const values = { name: 'Ada', password: 'another password 1', repeated: 'another password 1', login: 'mallory' };
  expect((await browser.submit(path, 'accept', values)).status).toBe(303);
  expect(await portal.parts.sessions.find(session)).toBeNull();
  const signIn = async (password: string) =>
    (await portal.browser().submit('/sign-in', 'password', { login: 'lost', password })).status;
  expect([await signIn(PASSWORD), await signIn('another password 1')]).toEqual([401, 303]);
});
