import { createMemorySessions } from '@playline/access-keys/test';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPortal, type TestPortal } from '../../test/open-portal.ts';
import { addPerson, PASSWORD } from '../../test/people.ts';
import type { TestBrowser } from '../../test/test-browser.ts';

let portal: TestPortal;
beforeAll(async () => {
  portal = await openPortal();
});
afterAll(() => portal.close());

/** @param also what is typed besides, and `path` where the page is another one */
const signIn = (browser: TestBrowser, login: string, also: Record<string, string> = {}) => {
  const { path = '/sign-in', ...typed } = also;
  return browser.submit(path, 'password', { login, password: PASSWORD, ...typed });
};

describe('the page to sign in', () => {
  it('gives another session at each sign-in, so that nobody can put one into a browser before', async () => {
    const ada = await addPerson(portal, 'ada', {});
    const planted = await portal.signIn();
    const before = planted.cookie;
    const answer = await signIn(planted, 'ADA', { path: '/sign-in?again=1' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    expect(planted.cookie).not.toBe(before);
    expect(answer.headers.getSetCookie()[0]).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/);
    const stolen = portal.browser();
    stolen.keep(before.split('=')[1]!);
    expect((await stolen.get('/')).status).toBe(303);
    expect((await planted.get('/settings')).text).toContain('<dd>ada</dd>');
    expect(await portal.parts.sessions.list(ada.id)).toHaveLength(1);
  });

  it('says the same of a login that nobody has, a wrong password and a disabled account, and keeps no password', async () => {
    await addPerson(portal, 'bob', {});
    await addPerson(portal, 'gone', { state: 'disabled' });
    const seen = [];
    for (const [login, password] of [
      ['bob', 'another password'],
      ['nobody', PASSWORD],
      ['gone', PASSWORD],
    ] as const) {
      const { status, text, headers } = await signIn(portal.browser(), login, { password });
      expect([status, headers.getSetCookie()]).toEqual([401, []]);
      expect(text).not.toContain(password);
      seen.push(/<p class="message failed" role="alert">([^<]*)</.exec(text)?.[1]);
    }
    expect(new Set(seen)).toEqual(new Set(['The login or the password is not right.']));
  });

  it.each([
    ['/projects/p?a=b', '/projects/p?a=b'],
    ['//evil.test/x', '/'],
    ['https://evil.test/', '/'],
    ['/\\evil.test', '/'],
    ['javascript:alert(1)', '/'],
  ])('goes on to a path of the portal alone: %s', async (next, path) => {
    const login = `led-${encodeURIComponent(next)}`.toLowerCase();
    await addPerson(portal, login, {});
    const browser = portal.browser();
    const answer = await signIn(browser, login, { path: `/sign-in?next=${encodeURIComponent(next)}` });
    expect(answer.headers.get('location')).toBe(path);
    expect((await signIn(browser, login, { next, path: '/sign-in?again=1' })).headers.get('location')).toBe(path);
    const shown = await browser.get(`/sign-in?next=${encodeURIComponent(next)}`);
    expect([shown.status, shown.headers.get('location')]).toEqual([303, path]);
  });

  it('tells whoever has tried too often to wait, right password or not', async () => {
    await addPerson(portal, 'tried', {});
    for (let at = 0; at < 10; at++) await signIn(portal.browser(), 'tried', { password: 'another password' });
    const { status, text } = await signIn(portal.browser(), 'tried');
    expect([status, text.includes('wait a quarter of an hour')]).toEqual([429, true]);
  });

  it('lets a browser in that the account has signed in with before, however often strangers have tried', async () => {
    const own = await openPortal();
    await addPerson(own, 'known', {});
    const browser = own.browser();
    await signIn(browser, 'known');
    await browser.submit('/', 'sign-out');
    for (let at = 0; at < 10; at++) await signIn(own.browser(), 'known', { password: 'another password' });
    expect((await signIn(own.browser(), 'known')).status).toBe(429);
    expect((await signIn(browser, 'known')).status).toBe(303);
    await own.close();
  });

  it('refuses a form of another site: nobody is signed in as somebody else', async () => {
    await addPerson(portal, 'forged', {});
    const browser = portal.browser();
    const { fields } = browser.formOf((await browser.get('/sign-in')).text, 'password')!;
    fields.set('login', 'forged');
    fields.set('password', PASSWORD);
    const answer = await browser.post('/sign-in', fields, {
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.test',
    });
    expect([answer.status, browser.cookie]).toEqual([400, '']);
  });

  it('refuses what is no passkey in the words for one that nobody has', async () => {
    for (const response of ['', '{', '{}', 'null', '{"id":"x","response":{"clientDataJSON":"e30"}}']) {
      const { status, text } = await portal.browser().submit('/sign-in', 'passkey', { response });
      expect([status, text.includes('The passkey is not known here')]).toEqual([401, true]);
    }
  });

  it('asks browsers for any passkey of this portal, by a challenge of its own each time', async () => {
    const ask = async () => JSON.parse((await portal.browser().get('/sign-in/passkey')).text);
    const [first, second] = [await ask(), await ask()];
    expect(first).toMatchObject({ rpId: 'localhost', userVerification: 'preferred' });
    expect(first.challenge).not.toBe(second.challenge);
  });
});

describe('signing out', () => {
  it('ends the session on the server, and takes the cookie away', async () => {
    const browser = await portal.signIn();
    const before = browser.cookie;
    const answer = await browser.submit('/', 'sign-out');
    expect([answer.status, answer.headers.get('location'), browser.cookie]).toEqual([
      303,
      '/sign-in?done=signed-out',
      '',
    ]);
    browser.keep(before.split('=')[1]!);
    expect((await browser.get('/')).status).toBe(303);
  });
});

describe('a Redis that was emptied', () => {
  it('signs everybody out, and lets them sign in again', async () => {
    const memory = createMemorySessions();
    const emptied = await openPortal({ sessions: memory.sessions, oneTime: memory.oneTimeTexts });
    await addPerson(emptied, 'ada', {});
    const browser = emptied.browser();
    await signIn(browser, 'ada');
    expect((await browser.get('/')).status).toBe(200);
    memory.empty();
    expect((await browser.get('/')).headers.get('location')).toBe('/sign-in?next=%2F');
    expect((await signIn(browser, 'ada')).status).toBe(303);
    await emptied.close();
  });
});
