import { type AccountContext, invite, issueFirstLink, resetAccess, revokeInvitation } from '@playline/access-keys';
import { createMemoryRecordLog } from '@playline/access-keys/test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal();
});
afterAll(() => portal.close());

const filled = { login: 'ada', name: 'Ada', password: PASSWORD, repeated: PASSWORD };
const operator = ({ parts }: TestPortal): AccountContext => {
  const store = parts.accounts.changedBy({ changedBy: 'a test', requestId: 'r' });
  return { store, sessions: parts.sessions, actorId: null };
};
const inviteTo = async (login: string) =>
  `/invitation?code=${(await invite(operator(portal), { name: login, roles: [{ projectId: 'p', role: 'analyst' }], isAdministrator: false })).text}`;

describe('the link of the first administrator', () => {
  it('the link creates one administrator when several forms are sent in parallel', async () => {
    const first = await openPortal();
    const { hash } = first.parts.passwords;
    const all = Promise.withResolvers<void>();
    let hashed = 0;
    // Every form has checked the link and hashed its password before any continues.
    Object.assign(first.parts.passwords, {
      hash: async (wanted: Parameters<typeof hash>[0]) => {
        const text = await hash(wanted);
        if (++hashed === 3) all.resolve();
        await all.promise;
        return text;
      },
    });
    const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTexts: first.parts.oneTime });
    const path = `/first-sign-in?code=${code}`;
    for (const _ of [1, 2, 3]) expect((await first.browser().get(path)).status).toBe(200);
    expect(await first.parts.accounts.all()).toEqual([]);
    const browsers = [first.browser(), first.browser(), first.browser()];
    const answers = await Promise.all(
      browsers.map((browser, at) => browser.submit(path, 'accept', { ...filled, login: `ada-${at}` })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 404, 404]);
    const accounts = await first.parts.accounts.all();
    expect(accounts).toMatchObject([
      { isAdministrator: true, state: 'live', name: 'Ada', passwordHash: expect.stringMatching(/^\$argon2id/) },
    ]);
    expect(accounts[0]!.changedBy).toBe(accounts[0]!.id);
    const winner = browsers[answers.findIndex(({ status }) => status === 303)]!;
    expect((await winner.get('/instance/accounts')).text).toContain('administrator');
    expect((await first.browser().get(path)).status).toBe(404);
    await first.close();
  });

  it('an unused link creates no administrator when there is one', async () => {
    const taken = await openPortal();
    const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTexts: taken.parts.oneTime });
    await addPerson(taken, 'root', { isAdministrator: true });
    const { status, headers } = await taken.browser().submit(`/first-sign-in?code=${code}`, 'accept', filled);
    expect([status, headers.getSetCookie()]).toEqual([404, []]);
    expect(await taken.parts.accounts.all()).toHaveLength(1);
    await taken.close();
  });

  it('the link stays valid after a login that is in use', async () => {
    const again = await openPortal();
    const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTexts: again.parts.oneTime });
    await addPerson(again, 'ada', {});
    const submit = (login: string) =>
      again.browser().submit(`/first-sign-in?code=${code}`, 'accept', { ...filled, login });
    const { status, text } = await submit('Ada');
    expect([status, text.includes('role="alert"')]).toEqual([409, true]);
    expect((await submit('root')).status).toBe(303);
    expect((await submit('eve').catch(() => null))?.status ?? 404).toBe(404);
    await again.close();
  });

  it('the link stays valid after an invalid form', async () => {
    const typo = await openPortal();
    const code = await issueFirstLink({ log: createMemoryRecordLog(), oneTimeTexts: typo.parts.oneTime });
    const submit = (also: object) =>
      typo.browser().submit(`/first-sign-in?code=${code}`, 'accept', { ...filled, ...also });
    for (const wrong of [
      { login: 'x' },
      { name: '' },
      { password: 'short', repeated: 'short' },
      { repeated: 'another' },
    ]) {
      const { status, text } = await submit(wrong);
      expect([status, text.includes('role="alert"'), text.includes(PASSWORD)]).toEqual([400, true, false]);
    }
    expect((await submit({})).status).toBe(303);
    await typo.close();
  });
});

describe('an invitation', () => {
  it('an invitation creates one account with its role only', async () => {
    const path = await inviteTo('bob');
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

  it('accepting an invitation ends the session of the browser', async () => {
    const browser = await portal.signIn();
    const before = browser.cookie.split('=')[1]!;
    await browser.submit(await inviteTo('zoe'), 'accept', { ...filled, login: 'zoe' });
    expect(await portal.parts.sessions.find(before)).toBeNull();
    expect((await browser.get('/settings')).text).toContain('<dd>zoe</dd>');
  });

  it('a signed-in user accepts an invitation, which adds the role to the account', async () => {
    const root = await addPerson(portal, 'has-account', { roles: [{ projectId: 'q', role: 'developer' }] });
    const path = await inviteTo('zed');
    const browser = portal.browser();
    const visited = await browser.get(path);
    const [, signIn = ''] = /href="(\/sign-in\?next=[^"]+)"/.exec(visited.text) ?? [];
    const typed = { login: 'has-account', password: PASSWORD };
    const answer = await browser.submit(signIn, 'password', typed);
    expect(answer.headers.get('location')).toBe(path);
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
    for (const other of [browser, portal.browser()]) expect((await other.get(path)).status).toBe(404);
  });

  it('accepting an invitation does not renew the sign-in', async () => {
    const browser = await portal.signIn();
    const find: typeof portal.parts.sessions.find = async (text) => {
      const session = await portal.parts.sessions.find(text);
      return session === null ? null : { ...session, signedInAt: Date.now() - 601_000 };
    };
    const { origin: _, ...shared } = portal.parts;
    const stale = await openPortal({ ...shared, sessions: { ...shared.sessions, find } });
    const old = stale.browser();
    old.keep(browser.cookie.split('=')[1]!);
    await old.submit(await inviteTo('yan'), 'join');
    const session = await portal.parts.sessions.find(old.cookie.split('=')[1]!);
    expect(session!.signedInAt).toBeLessThan(Date.now() - 600_000);
    await stale.close();
  });

  it('a revoked and an unknown invitation have the same answer', async () => {
    const { account, text } = await invite(operator(portal), { name: 'X', roles: [], isAdministrator: true });
    await revokeInvitation(operator(portal), account.id);
    const answers = [];
    for (const code of [text, 'nonsense', '']) answers.push(await portal.browser().get(`/invitation?code=${code}`));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });
});

describe('a reset link', () => {
  it('a reset link keeps the login, sets a new password and ends all sessions', async () => {
    const ada = await addPerson(portal, 'lost', {});
    const { text: session } = await portal.parts.sessions.create({ accountId: ada.id, userAgent: '', address: '' });
    const { text } = await resetAccess(operator(portal), ada.id);
    const browser = portal.browser();
    const path = `/reset?code=${text}`;
    expect((await browser.get(path)).text).toContain('<strong>lost</strong>');
    const values = { name: 'Ada', password: 'another password 1', repeated: 'another password 1', login: 'mallory' };
    expect((await browser.submit(path, 'accept', values)).status).toBe(303);
    expect(await portal.parts.sessions.find(session)).toBeNull();
    const other = portal.browser();
    expect((await other.submit('/sign-in', 'password', { login: 'lost', password: PASSWORD })).status).toBe(401);
    expect((await other.submit('/sign-in', 'password', { login: 'lost', password: 'another password 1' })).status).toBe(
      303,
    );
  });
});
